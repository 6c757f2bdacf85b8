"""Predicates that users add to the language: what they are, which are known, and how they are asked.

``predicate`` holds the model, ``registry`` the names that queries may call, ``decorator`` the public function that
adds to it, ``asking`` the meaning of a call, ``arrays`` the forms in which values reach functions over many events.
"""
