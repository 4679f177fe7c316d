import pytest

from tests.fuzz.bench import make_bench
from tests.helpers.runs import run_in
from tests.tasks.counting.conftest import counting_run, scenes_folder  # noqa: F401
from tests.tasks.gym.small import SMALL


@pytest.fixture(scope="session")
def skills_bench(smoke_run, tmp_path_factory):
    place = tmp_path_factory.mktemp("fuzz-skills")
    fine = run_in(place / "other", "skills", seed=1).folder
    return make_bench("skills", smoke_run, fine, place / "bench")


@pytest.fixture(scope="session")
def digits_bench(digits_run, tmp_path_factory):
    place = tmp_path_factory.mktemp("fuzz-digits")
    fine = run_in(place / "other", "digits", seed=1).folder
    return make_bench("digits", digits_run, fine, place / "bench")


@pytest.fixture(scope="session")
def counting_bench(counting_run, scenes_folder, tmp_path_factory):  # noqa: F811
    place = tmp_path_factory.mktemp("fuzz-counting")
    fine = run_in(place / "other", "counting", seed=1, scenes=str(scenes_folder)).folder
    settings = {"scenes": scenes_folder}
    return make_bench("counting", counting_run, fine, place / "bench", settings)


@pytest.fixture(scope="session", params=SMALL)
def environment_bench(request, tmp_path_factory):
    place, settings = tmp_path_factory.mktemp("fuzz-environment"), SMALL[request.param]
    runs = [run_in(place / str(n), "gym", seed=n, **settings).folder for n in (0, 1)]
    return make_bench("gym", *runs, place / "bench", settings)
