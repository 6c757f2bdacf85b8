"""Predicates that users add to the language.

``registry`` holds the model and the names that queries may call, ``decorator`` the public function that
registers, ``asking`` the meaning of a call, with the array forms of values and answers.
"""
