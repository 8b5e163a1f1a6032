"""The store: what comes back, from whom it is safe, and what it says when it cannot go on."""

from __future__ import annotations

import hashlib
import os
import pickle
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from localshapley.cli.store import app
from localshapley.engine import store_file
from localshapley.engine.score_store import Store
from localshapley.engine.store_file import StoreError
from localshapley.errors import InvalidArgumentError, LocalShapleyError

ONE, TWO = b"fingerprint one.", b"fingerprint two."
POOL = np.random.default_rng(99).integers(0, 2**64, (200, 2), dtype=np.uint64)  # digests of test rows
needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")


def batch(seed, n=200, tests=5, pool=POOL):
    """Random coalitions with `tests` test rows each: keys, test_indptr, test_keys, scores."""
    rng = np.random.default_rng(seed)
    keys = rng.integers(0, 2**64, (n, 2), dtype=np.uint64)
    rows = np.concatenate([rng.choice(len(pool), tests, replace=False) for _ in range(n)])
    return keys, np.arange(n + 1) * tests, pool[rows], rng.normal(size=n * tests)


def same_bits(a, b):
    a, b = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    return a.shape == b.shape and bool((a.view(np.uint64) == b.view(np.uint64)).all())


def filled(path, seeds=range(4), **how):
    with Store(path) as store:
        for seed in seeds:
            store.add(ONE, "a model", *batch(seed, **how))
    return path


def content_of(path):
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


class TestRoundTrip:
    def test_every_bit_comes_back(self, tmp_path):
        keys, indptr, test_keys, _ = batch(0, n=4, tests=3)
        scores = np.array([0.1, -0.0, 0.0, np.inf, -np.inf, 5e-324, 1e308, np.pi, 1 / 3, -1 / 3, 1.0, 2.0**-1074])
        with Store(tmp_path / "s") as store:
            store.add(ONE, "a model", keys, indptr, test_keys, scores)
            assert same_bits(store.lookup(ONE, keys, indptr, test_keys), scores)
        with Store(tmp_path / "s") as store:
            assert same_bits(store.lookup(ONE, keys, indptr, test_keys), scores)

    def test_what_is_not_known_is_nan(self, tmp_path):
        keys, indptr, test_keys, scores = batch(0)
        with Store(tmp_path / "s") as store:
            assert np.isnan(store.lookup(ONE, keys, indptr, test_keys)).all()
            store.add(ONE, "a model", keys, indptr, test_keys, scores)
            assert np.isnan(store.lookup(ONE, keys + np.uint64(1), indptr, test_keys)).all()
            assert np.isnan(store.lookup(ONE, keys, indptr, test_keys + np.uint64(1))).all()

    def test_nan_is_left_out_and_can_be_added_later(self, tmp_path):
        keys, indptr, test_keys, scores = batch(0)
        some = np.where(np.arange(len(scores)) % 3 == 0, np.nan, scores)
        some[:5] = np.nan  # a coalition without any score
        with Store(tmp_path / "s") as store:
            store.add(ONE, "a model", keys, indptr, test_keys, some)
            assert store.info().n_coalitions == len(keys) - 1
            assert store.info().n_scores == (~np.isnan(some)).sum()
            found = store.lookup(ONE, keys, indptr, test_keys)
            assert same_bits(found[~np.isnan(some)], scores[~np.isnan(some)])
            assert np.isnan(found[np.isnan(some)]).all()
            store.add(ONE, "a model", keys, indptr, test_keys, scores)
            assert same_bits(store.lookup(ONE, keys, indptr, test_keys), scores)
            assert store.verify() == []

    def test_a_score_that_is_there_stays(self, tmp_path):
        keys, indptr, test_keys, scores = batch(0)
        with Store(tmp_path / "s") as store:
            store.add(ONE, "a model", keys, indptr, test_keys, scores)
            store.add(ONE, "a model", keys, indptr, test_keys, scores + 1)
            store.add(ONE, "a model", keys, indptr, test_keys, np.full(len(scores), np.nan))
            assert same_bits(store.lookup(ONE, keys, indptr, test_keys), scores)

    def test_fingerprints_do_not_mix(self, tmp_path):
        keys, indptr, test_keys, scores = batch(0)
        with Store(tmp_path / "s") as store:
            store.add(ONE, "a model", keys, indptr, test_keys, scores)
            assert np.isnan(store.lookup(TWO, keys, indptr, test_keys)).all()
            store.add(TWO, "another", keys, indptr, test_keys, -scores)
            assert same_bits(store.lookup(ONE, keys, indptr, test_keys), scores)
            assert same_bits(store.lookup(TWO, keys, indptr, test_keys), -scores)

    def test_empty_coalition_and_none_at_all(self, tmp_path):
        nothing, no_keys = np.zeros(0), np.zeros((0, 2), dtype=np.uint64)
        empty = np.zeros((1, 2), dtype=np.uint64)
        with Store(tmp_path / "s") as store:
            store.add(ONE, "a model", no_keys, np.array([0]), no_keys, nothing)
            store.add(ONE, "a model", empty, np.array([0, 0]), no_keys, nothing)
            assert store.info().n_coalitions == 0
            store.add(ONE, "a model", empty, np.array([0, 2]), POOL[:2], np.array([0.5, 0.25]))
            assert store.lookup(ONE, empty, np.array([0, 2]), POOL[:2]).tolist() == [0.5, 0.25]
            assert store.lookup(ONE, empty, np.array([0, 0]), no_keys).shape == (0,)
            assert store.lookup(ONE, no_keys, np.array([0]), no_keys).shape == (0,)

    def test_digests_that_share_a_word_are_told_apart(self, tmp_path):
        words = np.array([0, 1, 255, 2**63, 2**64 - 1], dtype=np.uint64)
        keys = np.stack([a.ravel() for a in np.meshgrid(words, words)], axis=1)
        indptr = np.arange(len(keys) + 1) * len(keys)
        test_keys, scores = np.tile(keys, (len(keys), 1)), np.arange(len(keys) ** 2, dtype=np.float64)
        with Store(tmp_path / "s") as store:
            store.add(ONE, "a model", keys, indptr, test_keys, scores)
            assert same_bits(store.lookup(ONE, keys, indptr, test_keys), scores)
            for c in range(len(keys)):
                part = slice(indptr[c], indptr[c + 1])
                assert same_bits(store.lookup(ONE, keys[c : c + 1], np.array([0, 25]), test_keys[part]), scores[part])

    def test_a_large_batch(self, tmp_path):
        keys, indptr, test_keys, scores = batch(0, n=16_000)
        with Store(tmp_path / "s") as store:
            store.add(ONE, "a model", keys, indptr, test_keys, scores)
            order = np.random.default_rng(1).permutation(len(keys))
            shuffled = (indptr[order][:, None] + np.arange(5)).ravel()
            assert same_bits(store.lookup(ONE, keys[order], indptr, test_keys[shuffled]), scores[shuffled])
            assert store.info().n_scores == 80_000

    def test_any_history_gives_what_a_dictionary_gives(self, tmp_path):
        rng = np.random.default_rng(5)
        few = rng.integers(0, 2**64, (40, 2), dtype=np.uint64)
        known = {}

        def coalitions():
            """Keys may be repeated, and so may the test rows of one key."""
            keys = few[rng.integers(0, len(few), rng.integers(0, 30))]
            counts = rng.integers(0, 7, len(keys))
            return keys, np.concatenate([[0], np.cumsum(counts)]), POOL[rng.integers(0, 12, counts.sum())]

        def names(fingerprint, keys, indptr, test_keys):
            owners = np.repeat(keys, np.diff(indptr), axis=0)
            return [(fingerprint, *map(int, (*k, *t))) for k, t in zip(owners, test_keys, strict=True)]

        with Store(tmp_path / "s") as store:
            for step in range(150):
                fingerprint = (ONE, TWO)[step % 2]
                arrays = coalitions()
                scores = rng.choice([np.nan, 1.0, 2.0], len(arrays[2])) * rng.normal(size=len(arrays[2]))
                store.add(fingerprint, "a model", *arrays, scores)
                for name, score in zip(names(fingerprint, *arrays), scores, strict=True):
                    if not np.isnan(score):
                        known.setdefault(name, score)
                arrays = coalitions()
                wanted = [known.get(name, np.nan) for name in names(fingerprint, *arrays)]
                assert same_bits(store.lookup(fingerprint, *arrays), wanted)
            assert store.info().n_scores == len(known) > 500
            assert store.verify() == []

    def test_wrong_arguments_are_refused_and_nothing_is_written(self, tmp_path):
        keys, indptr, test_keys, scores = batch(0)
        with Store(tmp_path / "s") as store:
            for wrong in (
                (b"short", "a model", keys, indptr, test_keys, scores),
                (ONE, "a model", keys[1:], indptr, test_keys, scores),
                (ONE, "a model", keys, indptr, test_keys[1:], scores),
                (ONE, "a model", keys, indptr, test_keys, scores[1:]),
            ):
                with pytest.raises(InvalidArgumentError):
                    store.add(*wrong)
            assert store.info().n_coalitions == 0

    def test_blobs_are_little_endian(self, tmp_path):
        keys, test_keys = np.array([[1, 2**56]], dtype=np.uint64), np.array([[3, 4]], dtype=np.uint64)
        with Store(tmp_path / "s") as store:
            store.add(ONE, "a model", keys, np.array([0, 1]), test_keys, np.array([1.0]))
        key, scores = rows_of(tmp_path / "s", "SELECT key, scores FROM coalitions")[0]
        assert key == bytes([1] + [0] * 7 + [0] * 7 + [1])
        assert scores == bytes(4) + bytes([0, 0, 0, 0, 0, 0, 0xF0, 0x3F])


def rows_of(path, query):
    connection = sqlite3.connect(path)
    rows = connection.execute(query).fetchall()
    connection.commit()
    connection.close()
    return rows


class TestObject:
    def test_info_counts_and_keeps_times(self, tmp_path):
        before = datetime.now(UTC)
        with Store(tmp_path / "s") as store:
            store.add(ONE, "a model", *batch(0))
            store.add(TWO, "another", *batch(1, n=10, tests=2))
            store.add(ONE, "a model", *batch(2))
            info = store.info()
        assert info.path == tmp_path / "s"
        assert (info.n_coalitions, info.n_scores) == (410, 2020)
        assert [(c.about, c.n_coalitions) for c in info.contents] == [("a model", 400), ("another", 10)]
        assert before <= info.contents[0].first < info.contents[1].first <= info.contents[1].last
        assert info.contents[1].last < info.contents[0].last <= datetime.now(UTC)
        assert info.bytes > 2020 * 12

    def test_vacuum_makes_the_file_smaller_and_loses_nothing(self, tmp_path):
        arrays = batch(0, n=2000)
        with Store(tmp_path / "s") as store:
            for part in range(5):  # rows that grow leave gaps
                some = np.where(np.arange(10_000) % 5 == part, arrays[3], np.nan)
                store.add(ONE, "a model", *arrays[:3], some)
            before, after = store.vacuum()
            assert after < before
            assert after == os.path.getsize(tmp_path / "s") == store.info().bytes
            assert same_bits(store.lookup(ONE, *arrays[:3]), arrays[3])
            assert store.verify() == []

    def test_nothing_is_left_beside_the_file(self, tmp_path):
        filled(tmp_path / "s")
        assert os.listdir(tmp_path) == ["s"]

    def test_settings_of_the_file(self, tmp_path):
        filled(tmp_path / "s")
        assert rows_of(tmp_path / "s", "PRAGMA journal_mode") == [("wal",)]
        assert rows_of(tmp_path / "s", "PRAGMA application_id") == [(store_file.APPLICATION,)]
        assert rows_of(tmp_path / "s", "PRAGMA user_version") == [(store_file.FORMAT,)]

    def test_closed(self, tmp_path):
        store = Store(tmp_path / "s")
        assert repr(store) == f"Store({str(tmp_path / 's')!r})"
        store.close()
        store.close()
        assert "closed" in repr(store)
        with pytest.raises(StoreError, match="closed"):
            store.info()

    def test_pickled_by_path_without_being_opened(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        with Store("s") as store:
            store.add(ONE, "a model", *batch(0))
            text = pickle.dumps(store)
            monkeypatch.chdir("/")
            with pickle.loads(text) as copy:
                assert same_bits(copy.lookup(ONE, *batch(0)[:3]), batch(0)[3])
                copy.add(ONE, "a model", *batch(1))
            assert same_bits(store.lookup(ONE, *batch(1)[:3]), batch(1)[3])
        (tmp_path / "s").unlink()
        lost = pickle.loads(text)
        with pytest.raises(StoreError, match="check that it exists"):
            lost.info()
        assert not (tmp_path / "s").exists()

    def test_odd_paths(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        for name in ("a b", "50%", "what?", "#1", "Straße", ":memory:", "file:x?mode=memory"):
            assert Store(filled(name, seeds=[0])).info().n_coalitions == 200
            assert os.path.getsize(tmp_path / name) > 1000
        os.symlink("a b", "link")
        with Store("link") as store:
            store.add(ONE, "a model", *batch(1))
            assert store.info().bytes >= os.path.getsize(tmp_path / "a b")
        with Store("a b") as store:
            assert store.info().n_coalitions == 400

    def test_an_error_takes_the_whole_batch_back(self, tmp_path, monkeypatch):
        from localshapley.engine import score_store

        with Store(tmp_path / "s") as store:
            store.add(ONE, "a model", *batch(0))
            n_tests = rows_of(tmp_path / "s", "SELECT count(*) FROM tests")[0][0]

            def fail(*_):
                raise KeyboardInterrupt

            with monkeypatch.context() as patch:
                patch.setattr(score_store, "_write", fail)
                with pytest.raises(KeyboardInterrupt):
                    store.add(TWO, "another", *batch(1, pool=POOL + np.uint64(1)))
            assert len(store.info().contents) == 1
            assert rows_of(tmp_path / "s", "SELECT count(*) FROM tests") == [(n_tests,)]
            store.add(TWO, "another", *batch(2, pool=POOL + np.uint64(2)))  # takes the numbers that came free
            assert same_bits(store.lookup(TWO, *batch(2, pool=POOL + np.uint64(2))[:3]), batch(2)[3])
            assert np.isnan(store.lookup(TWO, *batch(1, pool=POOL + np.uint64(1))[:3])).all()
            assert store.verify() == []


def child(function, *arguments):
    """Run a function in a forked process; returns its pid."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            function(*arguments)
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    return pid


def ended_well(*pids):
    return [os.waitpid(pid, 0)[1] for pid in pids] == [0] * len(pids)


WRITER = """
import sys
sys.path.insert(0, {tests!r})
from tests.engine.test_store import ONE, Store, batch
store = Store({path!r})
print("ready", flush=True)
sys.stdin.readline()
for seed in {seeds}:
    keys, indptr, test_keys, scores = batch(seed)
    scores[{me}::3] = float("nan")
    store.add(ONE, "a model", keys, indptr, test_keys, scores)
    assert store.verify() == []
store.close()
"""


class TestTogether:
    def test_two_processes_with_overlapping_sets(self, tmp_path):
        path = tmp_path / "s"
        seeds = [list(range(20)), list(range(29, 9, -1))]
        writers = []
        for me in (0, 1):
            script = WRITER.format(tests=str(Path(__file__).parents[2]), path=str(path), seeds=seeds[me], me=me)
            how = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
            writers.append(subprocess.Popen([sys.executable, "-c", script], **how))
        for writer in writers:
            assert writer.stdout.readline() == "ready\n", writer.communicate()[1]
        for writer in writers:
            writer.stdin.write("\n")
            writer.stdin.flush()
        for writer in writers:
            _, errors = writer.communicate()
            assert writer.returncode == 0, errors
        with Store(path) as store:
            assert store.verify() == []
            for seed in range(30):
                keys, indptr, test_keys, scores = batch(seed)
                missing = np.ones(len(scores), dtype=bool)
                for me in (0, 1):
                    if seed in seeds[me]:
                        missing &= np.arange(len(scores)) % 3 == me  # both leave out nothing in common
                found = store.lookup(ONE, keys, indptr, test_keys)
                assert np.isnan(found[missing]).all()
                assert same_bits(found[~missing], scores[~missing])

    @needs_fork
    def test_many_processes_make_the_same_store_at_once(self, tmp_path):
        def make(path, me, gate):
            os.read(gate, 1)
            for turn in range(5):
                with Store(path) as store:
                    store.add(ONE, "a model", *batch(10 * me + turn, n=20))

        gate, opened = os.pipe()
        pids = [child(make, tmp_path / "s", me, gate) for me in range(6)]
        os.write(opened, b"x" * 6)
        assert ended_well(*pids)
        with Store(tmp_path / "s") as store:
            assert store.verify() == []
            assert store.info().n_coalitions == 6 * 5 * 20

    def test_threads(self, tmp_path):
        stores = [Store(tmp_path / "s")] * 3 + [Store(tmp_path / "s")]  # one shared, and another of the same file
        wrong = []

        def work(me):
            try:
                for turn in range(15):
                    arrays = batch(100 * (me // 2) + turn, n=50)  # two threads add the same
                    stores[me].add(ONE, "a model", *arrays)
                    if not same_bits(stores[me].lookup(ONE, *arrays[:3]), arrays[3]):
                        wrong.append((me, turn))
            except BaseException as error:
                wrong.append(error)

        threads = [threading.Thread(target=work, args=(me,)) for me in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert wrong == []
        assert stores[0].verify() == []
        assert stores[0].info().n_coalitions == 2 * 15 * 50
        for store in stores:
            store.close()

    @needs_fork
    def test_fork_while_threads_write(self, tmp_path):
        store = Store(tmp_path / "s")
        stop = threading.Event()
        written = []

        def write():
            while not stop.is_set():
                store.add(ONE, "a model", *batch(len(written), n=50))
                written.append(True)

        def add(seed):
            store.add(TWO, "of a child", *batch(seed, n=50))
            assert same_bits(store.lookup(TWO, *batch(seed, n=50)[:3]), batch(seed, n=50)[3])

        thread = threading.Thread(target=write)
        thread.start()
        assert ended_well(*[child(add, seed) for seed in range(8)])
        stop.set()
        thread.join()
        assert store.verify() == []
        assert {c.about: c.n_coalitions for c in store.info().contents} == {
            "a model": 50 * len(written),
            "of a child": 400,
        }
        store.close()

    @needs_fork
    @pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="open files cannot be listed here")
    def test_no_connection_is_open_in_a_child(self, tmp_path):
        store = Store(tmp_path / "s")
        store.add(ONE, "a model", *batch(0))

        def look():
            open_files = [os.path.realpath(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd")]
            assert not any(str(tmp_path) in name for name in open_files)

        assert ended_well(child(look))
        assert same_bits(store.lookup(ONE, *batch(0)[:3]), batch(0)[3])
        store.close()

    def test_a_lock_that_is_not_given_back(self, tmp_path):
        path = filled(tmp_path / "s")
        script = (
            f"import sqlite3; c = sqlite3.connect({str(path)!r}, isolation_level=None); c.execute('BEGIN IMMEDIATE')"
        )
        script += "; print('locked', flush=True); input()"
        how = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        with subprocess.Popen([sys.executable, "-c", script], **how) as other:
            assert other.stdout.readline() == "locked\n"
            with Store(path, timeout=0.2) as store:
                assert same_bits(store.lookup(ONE, *batch(0)[:3]), batch(0)[3])
                with pytest.raises(StoreError, match="locked by another process"):
                    store.add(ONE, "a model", *batch(9))
                other.communicate("\n")
                store.add(ONE, "a model", *batch(9))
                assert store.info().n_coalitions == 1000


@needs_fork
class TestKilled:
    @pytest.mark.slow
    def test_at_random_moments_of_writing(self, tmp_path):
        path, rng = tmp_path / "s", np.random.default_rng(3)
        batches = [batch(seed, n=300) for seed in range(400)]

        def write(first, progress):
            with Store(path) as store:
                for i in range(first, first + 30):
                    store.add(ONE, "a model", *batches[i])
                    os.write(progress, b".")
                signal.pause()  # on a machine that is too quick to be killed while it writes

        done = 0
        for _ in range(12):
            listen, progress = os.pipe()
            pid = child(write, done, progress)
            os.close(progress)
            done += len(os.read(listen, 1))  # it is at work
            time.sleep(rng.uniform(0, 0.12))
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            while more := os.read(listen, 1000):
                done += len(more)
            os.close(listen)
            with Store(path) as store:
                assert store.verify() == []
                for i in range(done):
                    assert same_bits(store.lookup(ONE, *batches[i][:3]), batches[i][3])
                last = np.isnan(store.lookup(ONE, *batches[done][:3]))  # written, but it could not say so
                assert last.all() or not last.any()
                assert store.info().n_coalitions == 300 * (done + (not last.any()))
            done += not last.any()
        assert 12 <= done < len(batches)

    def test_at_random_moments_of_making_stores(self, tmp_path):
        rng = np.random.default_rng(4)

        def make(folder, progress):
            for i in range(1000):
                Store(folder / str(i)).add(ONE, "a model", *batch(0, n=1))
                os.write(progress, b".")

        made = 0
        for turn in range(10):
            folder = tmp_path / f"turn {turn}"
            folder.mkdir()
            listen, progress = os.pipe()
            pid = child(make, folder, progress)
            os.read(listen, 1)  # the first is made
            time.sleep(rng.uniform(0, 0.05))
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            os.close(listen)
            os.close(progress)
            for name in {name.split("-")[0] for name in os.listdir(folder)}:
                with Store(folder / name) as store:
                    assert store.verify() == []
                    made += store.info().n_coalitions
        assert made >= 10


class TestRefused:
    """Each case: a clear message, and the file as it was."""

    def refused(self, path, match):
        before = content_of(path) if os.path.isfile(path) else None
        beside = sorted(os.listdir(Path(path).parent)) if Path(path).parent.is_dir() else None
        with pytest.raises(StoreError, match=match) as caught:
            Store(path)
        assert isinstance(caught.value, LocalShapleyError)
        assert "\n" not in str(caught.value)
        assert str(path) in str(caught.value)
        if before:
            assert content_of(path) == before
        if beside is not None:
            assert sorted(os.listdir(Path(path).parent)) == beside

    def test_files_of_other_programs(self, tmp_path):
        (tmp_path / "text").write_text("row,value\n" * 1000)
        (tmp_path / "short").write_text("x")
        (tmp_path / "png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(5000))
        for name in ("text", "short", "png"):
            self.refused(tmp_path / name, "is not a store.* use another path")

    @pytest.mark.parametrize("journal", ["delete", "wal"])
    @pytest.mark.parametrize("application", [0, 1234])
    def test_a_database_of_another_program(self, tmp_path, journal, application):
        connection = sqlite3.connect(tmp_path / "other")
        connection.execute(f"PRAGMA journal_mode = {journal}")
        connection.execute(f"PRAGMA application_id = {application}")
        connection.execute("CREATE TABLE coalitions (x)")
        connection.commit()
        self.refused(tmp_path / "other", "SQLite database of another program; use another path")
        connection.execute("INSERT INTO coalitions VALUES (1)")
        connection.commit()
        connection.close()
        self.refused(tmp_path / "other", "another program")

    def test_an_empty_database(self, tmp_path):
        for statement in ("CREATE TABLE coalitions (x)", "DROP TABLE coalitions"):
            rows_of(tmp_path / "other", statement)
        assert os.path.getsize(tmp_path / "other") > 0
        self.refused(tmp_path / "other", "another program")

    def test_a_newer_and_an_older_format(self, tmp_path):
        rows_of(filled(tmp_path / "s"), "PRAGMA user_version = 2")
        self.refused(tmp_path / "s", r"newer version of localshapley \(format 2, this one reads 1\); install")
        rows_of(tmp_path / "s", "PRAGMA user_version = 0")
        self.refused(tmp_path / "s", "older version")

    def test_folders(self, tmp_path):
        self.refused(tmp_path, "is a folder")
        self.refused(tmp_path / "no" / "such" / "s", "does not exist; create it first")
        (tmp_path / "file").write_text("x")
        self.refused(tmp_path / "file" / "s", "cannot be read|does not exist")
        assert os.listdir(tmp_path) == ["file"]

    @pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")
    def test_a_pipe(self, tmp_path):
        os.mkfifo(tmp_path / "pipe")
        self.refused(tmp_path / "pipe", "not a regular file")

    def test_an_empty_file_becomes_a_store(self, tmp_path):
        (tmp_path / "s").touch()
        assert Store(filled(tmp_path / "s")).info().n_coalitions == 800


def attempt(function, *arguments):
    """What a function returns, or its error, which must be about damage."""
    try:
        return function(*arguments)
    except StoreError as error:
        if "is damaged" not in str(error):
            raise
        return error


def never_wrong(found, scores):
    """Whether what a damaged store found is an error, or right wherever it is not NaN."""
    if isinstance(found, StoreError):
        return True
    known = ~np.isnan(found)
    return same_bits(found[known], scores[known])


class TestDamaged:
    @pytest.mark.parametrize("part", [0.01, 0.3, 0.5, 0.9])
    def test_truncated(self, tmp_path, part):
        path = filled(tmp_path / "s")
        os.truncate(path, int(part * os.path.getsize(path)))
        before = content_of(path)
        with pytest.raises(StoreError, match=r"is damaged \(.*\)\. Restore a backup of it, or move it away"):
            Store(path)
        assert content_of(path) == before

    def test_truncated_within_the_header(self, tmp_path):
        path = filled(tmp_path / "s")
        os.truncate(path, 50)
        with pytest.raises(StoreError, match="not a store"):
            Store(path)
        assert os.path.getsize(path) == 50

    def test_a_few_bytes_cut_off(self, tmp_path):
        path = filled(tmp_path / "s")
        os.truncate(path, os.path.getsize(path) - 100)
        with Store(path) as store:
            assert store.verify()
            found = [attempt(store.lookup, ONE, *batch(seed)[:3]) for seed in range(4)]
        assert any(isinstance(scores, StoreError) for scores in found)
        assert all(never_wrong(scores, batch(seed)[3]) for seed, scores in enumerate(found))

    @pytest.mark.parametrize("seed", range(25))
    def test_random_bytes_never_give_a_wrong_number(self, tmp_path, seed):
        rng = np.random.default_rng(seed)
        path = filled(tmp_path / "s", tests=12)
        length = int(rng.choice([40, 300, 6000]))
        with open(path, "r+b") as file:
            file.seek(int(rng.integers(100, os.path.getsize(path) - length)))
            file.write(rng.bytes(length))
        before = content_of(path)
        store = attempt(Store, path)
        if isinstance(store, Store):
            noticed = length == 6000  # a shorter piece can lie in a gap
            for turn in range(4):
                arrays = batch(turn, tests=12)
                found = attempt(store.lookup, ONE, *arrays[:3])
                assert never_wrong(found, arrays[3])
                if isinstance(found, StoreError):
                    assert isinstance(attempt(store.add, ONE, "a model", *arrays), StoreError)
                noticed |= isinstance(found, StoreError) or np.isnan(found).any()
            assert store.verify() or not noticed
            store.close()
        assert content_of(path) == before

    def test_one_flipped_bit(self, tmp_path):
        keys, indptr, test_keys, scores = batch(0, n=1, tests=1)
        path = tmp_path / "s"
        with Store(path) as store:
            store.add(ONE, "a model", keys, indptr, test_keys, scores)
        sound = path.read_bytes()
        score = 8 * sound.index(scores.tobytes())
        anywhere, opened = np.random.default_rng(0).integers(8 * 100, 8 * len(sound), 100), 0
        for bit in [*range(score, score + 64), *anywhere]:
            damaged = bytearray(sound)
            damaged[bit // 8] ^= 1 << (bit % 8)
            path.write_bytes(damaged)
            store = attempt(Store, path)
            if isinstance(store, Store):
                opened += 1
                found = attempt(store.lookup, ONE, keys, indptr, test_keys)
                problems = store.verify()
                store.close()
                assert never_wrong(found, scores)
                assert problems or same_bits(found, scores)
                if score <= bit < score + 64:
                    assert isinstance(found, StoreError)
        assert opened > 100

    @pytest.mark.parametrize(
        ("change", "problem"),
        [
            ("UPDATE coalitions SET crc = crc + 1 WHERE id = 5", "1 coalitions have scores that do not match"),
            ("UPDATE coalitions SET scores = 'text' WHERE id < 3", "2 coalitions have scores that do not match"),
            ("UPDATE coalitions SET fingerprint = 7", "800 coalitions have scores that do not match"),
            ("UPDATE fingerprints SET digest = x'00'", "800 coalitions have scores that do not match"),
            ("UPDATE tests SET id = id + 1000", "200 test rows do not match"),
            ("DELETE FROM tests", "4000 scores belong to missing test rows"),
            ("DROP TABLE tests", "no such table"),
        ],
    )
    def test_verify_says_what_is_wrong(self, tmp_path, change, problem):
        rows_of(filled(tmp_path / "s"), change)
        with Store(tmp_path / "s") as store:
            assert any(problem in text for text in store.verify())
            for seed in range(4):
                assert never_wrong(attempt(store.lookup, ONE, *batch(seed)[:3]), batch(seed)[3])

    def test_swapped_rows_are_noticed(self, tmp_path):
        path = filled(tmp_path / "s")
        rows_of(path, "UPDATE tests SET id = -1 - id WHERE id < 2")
        rows_of(path, "UPDATE tests SET id = 2 + id WHERE id < 0")
        with Store(path) as store:
            assert store.verify() == ["2 test rows do not match their checksums"]
            keys, indptr, test_keys, _ = batch(0)
            with pytest.raises(StoreError, match="a test row does not match its checksum"):
                store.lookup(ONE, keys, indptr, test_keys)


def fill_up(path, most=10_000):
    """Add batches until an error; returns it and the number of batches that were kept."""
    store = Store(path)
    for i in range(most):
        try:
            store.add(ONE, "a model", *batch(i, n=500))
        except StoreError as error:
            return store, error, i
    raise AssertionError("it was never full")


def all_there(store, n):
    for i in range(n):
        assert same_bits(store.lookup(ONE, *batch(i, n=500)[:3]), batch(i, n=500)[3])
    assert store.verify() == []


class TestFull:
    @pytest.fixture
    def small_disk(self, tmp_path):
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", tmp_path], capture_output=True).returncode:
            pytest.skip("a small disk cannot be mounted here")
        yield tmp_path
        subprocess.run(["umount", tmp_path], check=True)

    def test_a_real_full_disk(self, small_disk):
        store, error, n = fill_up(small_disk / "s")
        assert "the disk is full" in str(error)
        assert n > 2
        all_there(store, n)
        with pytest.raises(StoreError, match="the disk is full"):
            store.add(ONE, "a model", *batch(n, n=5000))
        store.close()
        with Store(small_disk / "s") as store:
            all_there(store, n)
        subprocess.run(["mount", "-o", "remount,size=20m", small_disk], check=True)
        with Store(small_disk / "s") as store:
            store.add(ONE, "a model", *batch(n, n=500))
            all_there(store, n + 1)

    def test_a_disk_that_is_full_from_the_start(self, small_disk):
        with pytest.raises(OSError, match="No space"):
            (small_disk / "other").write_bytes(bytes(3_000_000))
        with pytest.raises(StoreError, match="the disk is full"):
            Store(small_disk / "s")

    @needs_fork
    def test_a_file_that_may_not_grow(self, tmp_path):
        resource = pytest.importorskip("resource")

        def limited():
            resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000))
            store, error, n = fill_up(tmp_path / "s")
            assert "the disk is full" in str(error)
            assert n > 2
            all_there(store, n)
            (tmp_path / "n").write_text(str(n))
            store.close()

        assert ended_well(child(limited))
        with Store(tmp_path / "s") as store:
            all_there(store, int((tmp_path / "n").read_text()))

    def test_pages_run_out(self, tmp_path):
        with Store(tmp_path / "s") as store:
            store.add(ONE, "a model", *batch(0, n=500))
            with store._file.connected() as connection:
                connection.execute("PRAGMA max_page_count = 40")
            with pytest.raises(StoreError, match=r"the disk is full.* what was stored before is still there"):
                store.add(ONE, "a model", *batch(1, n=5000))
            all_there(store, 1)


@needs_fork
class TestRights:
    """As a user without rights, which root has to become first."""

    @pytest.fixture
    def folder(self):
        with tempfile.TemporaryDirectory() as name:
            os.chmod(name, 0o755)
            yield Path(os.path.realpath(name))
            os.chmod(name, 0o755)

    def as_user(self, function):
        def run():
            if os.geteuid() == 0:
                os.setgid(65534)
                os.setuid(65534)
            function()

        assert ended_well(child(run))

    def test_no_right_to_read(self, folder):
        path = filled(folder / "s")
        os.chmod(path, 0)

        def use():
            with pytest.raises(StoreError, match=r"cannot be read .*Permission denied"):
                Store(path)

        self.as_user(use)

    def test_no_right_to_make(self, folder):
        def use():
            with pytest.raises(StoreError, match="is not writable"):
                Store(folder / "s")

        os.chmod(folder, 0o555)
        self.as_user(use)
        assert os.listdir(folder) == []

    @pytest.mark.parametrize("folder_is", [0o555, 0o777])
    def test_read_only(self, folder, folder_is):
        path = filled(folder / "s")
        before = content_of(path)
        os.chmod(path, 0o444)
        os.chmod(folder, folder_is)

        def use():
            with Store(path) as store:
                assert store.info().n_coalitions == 800
                assert store.verify() == []
                for use in (lambda: store.add(ONE, "a model", *batch(9)), store.vacuum):
                    with pytest.raises(StoreError, match="is read-only"):
                        use()
                assert same_bits(store.lookup(ONE, *batch(0)[:3]), batch(0)[3])

        self.as_user(use)
        assert content_of(path) == before
        assert os.listdir(folder) == ["s"]

    @pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs two users")
    def test_read_only_while_the_owner_writes(self, folder):
        path = folder / "s"
        store = Store(filled(path, seeds=[0]))
        heard, said = os.pipe()
        answered, answer = os.pipe()

        def use():
            with Store(path) as reader:
                for i in (1, 2, 3):
                    os.write(answer, b".")
                    os.read(heard, 1)
                    assert same_bits(reader.lookup(ONE, *batch(i)[:3]), batch(i)[3])
                    assert reader.verify() == []

        def run():
            os.setuid(65534)
            use()

        pid = child(run)
        for i in (1, 2, 3):
            os.read(answered, 1)
            store.add(ONE, "a model", *batch(i))
            if i == 2:
                store.close()
                store = Store(path)
            os.write(said, b".")
        assert ended_well(pid)
        store.close()


class TestCommandLine:
    def run(self, *words):
        return CliRunner().invoke(app, [str(word) for word in words], env={"COLUMNS": "200"})

    def test_info(self, tmp_path):
        with Store(tmp_path / "s") as store:
            store.add(ONE, "KNeighborsClassifier(n_neighbors=2), [bold]confidence\x1b[31m", *batch(0))
            store.add(TWO, "another", *batch(1, n=1234, tests=2))
        done = self.run("info", tmp_path / "s")
        assert done.exit_code == 0
        assert "1,434 coalitions, 3,468 scores" in done.output
        assert "[bold]confidence" in done.output
        assert "\x1b[31m" not in done.output
        line = next(line for line in done.output.splitlines() if "another" in line)
        assert "1,234" in line
        assert line.count(f"{datetime.now():%Y-}") == 2

    def test_vacuum(self, tmp_path):
        filled(tmp_path / "s")
        done = self.run("vacuum", tmp_path / "s")
        assert done.exit_code == 0
        assert "MB before" in done.output
        assert "MB after" in done.output

    def test_verify(self, tmp_path):
        filled(tmp_path / "s")
        done = self.run("verify", tmp_path / "s")
        assert (done.exit_code, done.output) == (0, "sound\n")
        rows_of(tmp_path / "s", "UPDATE coalitions SET crc = 0 WHERE id < 4")
        done = self.run("verify", tmp_path / "s")
        assert (done.exit_code, done.output) == (1, "3 coalitions have scores that do not match their checksums\n")

    def test_errors_are_one_line_and_nothing_is_made(self, tmp_path):
        (tmp_path / "empty").touch()
        (tmp_path / "text").write_text("x" * 1000)
        os.truncate(filled(tmp_path / "cut"), 20_000)
        script = "from localshapley.cli.store import app; app()"
        for command, name, says in (
            ("info", "no", "does not exist"),
            ("vacuum", "empty", "is empty"),
            ("verify", "text", "is not a store"),
            ("verify", "cut", "is damaged"),
        ):
            words = [sys.executable, "-c", script, command, str(tmp_path / name)]
            done = subprocess.run(words, capture_output=True, text=True)
            assert (done.returncode, done.stdout) == (1, "")
            assert says in done.stderr
            assert done.stderr.count("\n") == 1
            assert {self.run(command, tmp_path / name).exit_code for command in ("info", "vacuum", "verify")} == {1}
        assert sorted(os.listdir(tmp_path)) == ["cut", "empty", "text"]
        assert os.path.getsize(tmp_path / "empty") == 0

    def test_nothing_heavy_is_imported_for_the_help(self):
        script = "import localshapley.cli.store, sys; print([m for m in ('numpy', 'sqlite3') if m in sys.modules])"
        assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True).stdout.strip() == "[]"
