"""What all tests have in common: how property tests are run."""

from hypothesis import HealthCheck, settings

# How long an example takes says how busy the machine is, and nothing about what is tested. The rest
# stays as Hypothesis has it, who takes the same examples each time where CI is set.
settings.register_profile(
    "any-machine",
    parent=settings(),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("any-machine")
