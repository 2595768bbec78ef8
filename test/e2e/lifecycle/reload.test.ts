import { writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { describe, expect, it } from "vitest";
import { say, scriptedModel, startUpstream } from "tollgate/testing";
import { withTestStore } from "../../kit/database/store-under-test.ts";
import { startDaemon } from "../../kit/process/daemon.ts";
import { killUntilExit } from "../../kit/process/program.ts";
import { turnEventLoop, until } from "../../kit/wait.ts";
import { NIGHTLY } from "../../kit/law-effort.ts";

/** More if started manually (`SAVES=1000`). */
const SAVES = Number(process.env["SAVES"] ?? (NIGHTLY ? 60 : 20));
const STREAM_MS = 4_000;

const WORDS = say(Array.from({ length: STREAM_MS / 50 }, (_, n) => `w${n}`).join(" "));
/** Sends non-streaming responses immediately, and streams a word every 50 ms for some time. */
const slowly = () =>
  startUpstream({
    ...scriptedModel(WORDS),
    "POST /v1/chat/completions": (asked) => ({ ...WORDS.toResponse(asked), chunkDelayMs: 50 }),
  });

const yaml = (url: string, n: number) => `
frontends: [chat-completions]
middleware: [auth, zdr, limits, { use: usage, with: { label_headers: [x-n${n}] } }]
providers:
  up: { use: openai-compatible, with: { base_url: "${url}/v1" } }
`;

describe("reload", () => {
  it(
    "under load: no request fails or is truncated, and old generations end",
    { timeout: 300_000 },
    async () => {
      await using up = await slowly();
      await using gateway = await startDaemon({ yaml: yaml(up.url, 0) });
      const ask = (stream: boolean) =>
        fetch(`${gateway.url}/v1/chat/completions`, {
          method: "POST",
          headers: { "content-type": "application/json", authorization: `Bearer ${gateway.key}` },
          body: JSON.stringify({
            model: "up/m",
            stream,
            messages: [{ role: "user", content: "x" }],
          }),
        });
      const served = new Map<number, number>();
      const failures: string[] = [];
      let over = false;
      let outlived = 0;
      const steady = async () => {
        while (!over) {
          try {
            const res = await ask(false);
            const generation = Number(res.headers.get("x-tollgate-generation"));
            served.set(generation, (served.get(generation) ?? 0) + 1);
            if (res.status !== 200) failures.push(`${res.status} ${await res.text()}`);
            else await res.json();
          } catch (error) {
            failures.push(String(error));
          }
          await turnEventLoop();
        }
      };
      const streams = async () => {
        while (!over) {
          try {
            const res = await ask(true);
            const began = Number(res.headers.get("x-tollgate-generation"));
            const text = await res.text();
            if (!text.trimEnd().endsWith("data: [DONE]"))
              failures.push(`stream: ${text.slice(-200)}`);
            if (Math.max(...served.keys()) - began >= 10) outlived++;
          } catch (error) {
            failures.push(`stream: ${String(error)}`);
          }
        }
      };
      const load = [steady(), steady(), ...Array.from({ length: 8 }, streams)];
      let taken = 0;
      // Each save waits for the gateway's report, so a busy machine only takes longer.
      for (let n = 1; n <= SAVES || outlived === 0; n++) {
        const bad = n % 5 === 0;
        const seen = gateway.log.length;
        const text = bad ? `${yaml(up.url, n)}\nmodles: {}\n` : yaml(up.url, n);
        await writeFile(gateway.file, await withTestStore(text, dirname(gateway.file)));
        await gateway.line(
          (line) =>
            gateway.log.indexOf(line) >= seen &&
            (bad ? line.msg.startsWith("reload rejected") : line.msg === "reloaded"),
        );
        if (!bad) taken++;
      }
      over = true;
      await Promise.all(load);
      const generations = [...served.keys()].toSorted((a, b) => a - b);
      console.log(
        `reload: ${generations.length} generations answered (${generations[0]}…${generations.at(-1)}), ` +
          `${[...served.values()].reduce((a, b) => a + b, 0)} requests, ${outlived} streams outlived ten swaps, ${failures.length} failures`,
      );
      console.log(`reload histogram: ${generations.map((g) => `${g}:${served.get(g)}`).join(" ")}`);
      expect(failures).toEqual([]);
      expect(generations.length).toBeGreaterThan(1);
      expect(generations.at(-1)).toBeLessThanOrEqual(taken + 1);
      const refused = gateway.log.filter((l) => l.msg.startsWith("reload rejected"));
      expect(refused.length).toBeGreaterThan(0);
      expect(JSON.stringify(refused[0])).toContain("models");
      // All but the last have ended.
      const alive = async () =>
        ((await gateway.ask("status")) as { generations: unknown[] }).generations.length;
      await until(async () => (await alive()) === 1);
    },
  );

  it("rejects a change of static keys, by name, and continues", async () => {
    await using up = await slowly();
    await using gateway = await startDaemon({ yaml: yaml(up.url, 0) });
    await gateway.write(
      `listen: { hosts: [gate.test] }\nstate_dir: ./other\nworkers: 2\n${yaml(up.url, 1)}`,
    );
    const line = await gateway.line((l) => l.msg.startsWith("reload rejected"));
    expect(line["restart_keys"]).toEqual(["listen", "workers", "state_dir"]);
  });

  it("SIGHUP reloads the config", async () => {
    await using up = await slowly();
    await using gateway = await startDaemon({ yaml: yaml(up.url, 0), args: ["--no-watch"] });
    await gateway.write(yaml(up.url, 1));
    gateway.kill("SIGHUP");
    expect((await gateway.line((l) => l.msg === "reloaded"))["generation"]).toBe(2);
  });
});

describe("shutdown", () => {
  it("SIGTERM with many open streams: none is truncated, exit code 0, in any environment", async () => {
    await using up = await slowly();
    await using gateway = await startDaemon({
      yaml: yaml(up.url, 0),
      env: { CI: "1", NODE_ENV: "production" },
    });
    const streams = Array.from({ length: NIGHTLY ? 100 : 30 }, async () => {
      const res = await fetch(`${gateway.url}/v1/chat/completions`, {
        method: "POST",
        headers: { "content-type": "application/json", authorization: `Bearer ${gateway.key}` },
        body: JSON.stringify({
          model: "up/m",
          stream: true,
          messages: [{ role: "user", content: "x" }],
        }),
      });
      return { res, text: res.text() };
    });
    const begun = await Promise.all(streams);
    gateway.kill("SIGTERM");
    const open = await Promise.all(begun.map(({ text }) => text));
    expect(open.filter((text) => !text.trimEnd().endsWith("data: [DONE]"))).toEqual([]);
    expect((await gateway.exit).code).toBe(0);
  });

  it("a second signal aborts; Ctrl-C ends an idle gateway immediately", async () => {
    await using up = await slowly();
    await using gateway = await startDaemon({ yaml: yaml(up.url, 0) });
    const res = await fetch(`${gateway.url}/v1/chat/completions`, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${gateway.key}` },
      body: JSON.stringify({
        model: "up/m",
        stream: true,
        messages: [{ role: "user", content: "x" }],
      }),
    });
    gateway.kill("SIGTERM");
    await gateway.line((l) => l.msg.startsWith("shutting down after"));
    // Two signals in quick succession count as one: a terminal and npm both forward Ctrl-C.
    const cut = expect(res.text()).rejects.toThrow();
    await killUntilExit(gateway, "SIGTERM");
    await cut;

    await using idle = await startDaemon({ yaml: yaml(up.url, 0) });
    idle.kill("SIGINT");
    expect((await idle.exit).code).toBe(0);
  });
});
