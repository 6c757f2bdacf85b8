"""Predicates that users add to the language.

``registry`` holds the model, the names that queries may call, and the public function that registers; ``asking`` the
meaning of a call, with the array forms of values and answers.
"""
