"""Predicates that users add to the language.

``predicate`` holds the model, ``registry`` the names that queries may call, ``decorator`` the public function that
registers, ``asking`` the meaning of a call, with the array forms of values and answers.
"""
