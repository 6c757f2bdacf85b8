"""Conditions and expressions on events, as columns of a batch or on one event; strings become codes here."""
