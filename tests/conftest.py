"""Settings for all tests; shared data and strategies stand beside this file and are imported by name."""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "cerflow", deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much]
)
settings.load_profile("cerflow")
