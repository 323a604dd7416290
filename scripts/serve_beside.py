#!/usr/bin/env python3
"""What good clients of `satf serve` notice beside model swaps, or beside hostile clients (docs/results/serving.md).

    scripts/serve_beside.py swaps   target/release/satf LOG MODEL OTHER_MODEL
    scripts/serve_beside.py hostile target/release/satf LOG MODEL

Starts a server on this machine, asks it at a fixed rate by `satf bench serve`, and prints the reports of a run alone and of one beside.
"""
import json, os, shutil, socket, subprocess, sys, tempfile, threading, time, urllib.request

SECONDS = {"swaps": 60, "hostile": 12}
RATE = {"swaps": 500, "hostile": 2000}
HEAD = b"POST /v1/recommend HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"


def bench(satf, log, server, port, rate, seconds):
    command = [satf, "bench", "serve", log, "--address", f"127.0.0.1:{port}", "--pid", str(server.pid), "--rate", str(rate)]
    command += ["--seconds", str(seconds), "--warm-up", "0", "--json", "-q"]
    return subprocess.Popen(command, stdout=subprocess.PIPE)


def report(process):
    (found,) = json.loads(process.communicate()[0])["rates"]
    return {key: found[key] for key in ["rate", "answered", "rejected", "errors", "latency_ms", "server_memory"]}


def swaps(port, models, path):
    """A thousand swaps, one after the other."""
    for at in range(1000):
        shutil.copy(models[at % 2], path + ".next")
        os.rename(path + ".next", path)
        reload = urllib.request.Request(f"http://127.0.0.1:{port}/v1/admin/reload", method="POST")
        outcome = json.load(urllib.request.urlopen(reload))
        assert outcome["loaded"] and not outcome["refused"], outcome


def attack(port, head, body=b"", chunks=0):
    """Sends, and gives the status of the answer."""
    stream = socket.create_connection(("127.0.0.1", port))
    stream.settimeout(10)
    try:
        stream.sendall(head + body)
        for _ in range(chunks):
            stream.sendall(b"1\r\n \r\n" * 10_000)
    except OSError:
        pass
    try:
        return int(stream.recv(4096)[9:12] or 0)
    except (OSError, ValueError):
        return 0
    finally:
        stream.close()


def hostile(port, end, seen):
    """Attack after attack until the time is over, beside a thousand connections that say nothing more."""
    stalled = [socket.create_connection(("127.0.0.1", port)) for _ in range(1000)]
    for stream in stalled:
        stream.sendall(HEAD[:40])
    sized = lambda body: HEAD + b"content-length: %d\r\n\r\n" % len(body)
    deep, many = b"[" * 500_000, b'{"history":[%s1]}' % (b"1," * 1_000_000)
    attacks = {
        "crumbs": (HEAD + b"transfer-encoding: chunked\r\n\r\n", b"", 300),
        "deep": (sized(deep), deep, 0),
        "1 GB announced": (HEAD + b"content-length: 1000000000\r\n\r\n{", b"", 0),
        "invalid UTF-8": (sized(b'{"model": "\xff\xff"}'), b'{"model": "\xff\xff"}', 0),
        "n = 10^9": (sized(b'{"n": 1000000000}'), b'{"n": 1000000000}', 0),
        "history of 10^6": (sized(many), many, 0),
        "headers": (HEAD + b"x-flood: 1\r\n" * 10_000 + b"\r\n", b"", 0),
    }
    while time.time() < end:
        for name, (head, body, chunks) in attacks.items():
            seen.setdefault(name, []).append(attack(port, head, body, chunks))
            time.sleep(0.05)
    for stream in stalled:
        stream.close()


def main():
    mode, satf, log, *models = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.satf")
        shutil.copy(models[0], path)
        server = subprocess.Popen([satf, "serve", path, "--listen", "127.0.0.1:0", "--set", "watch_seconds=0"],
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        try:
            port = int(server.stdout.readline().decode().rsplit(":", 1)[1])
            rate = RATE[mode]
            print("alone ", json.dumps(report(bench(satf, log, server, port, rate, 5))))
            beside = bench(satf, log, server, port, rate, SECONDS[mode])
            started, seen = time.time(), {}
            if mode == "swaps":
                swaps(port, models, path)
                print(f"a thousand swaps took {time.time() - started:.1f} s")
            else:
                workers = [threading.Thread(target=hostile, args=(port, started + SECONDS[mode] - 1, seen))]
                for worker in workers:
                    worker.start()
                for worker in workers:
                    worker.join()
                print("statuses", {name: sorted(set(found)) + [len(found)] for name, found in seen.items()})
            print("beside", json.dumps(report(beside)))
        finally:
            server.terminate()
            server.wait()


main()
