from tests.reward_model.conftest import one_thread  # noqa: F401
