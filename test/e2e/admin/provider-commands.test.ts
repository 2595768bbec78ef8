// Provider and config commands for a running gateway: the health of each provider, a test call with
// a credential, a reset of a cooldown, the source of each config value, and a check that reveals no
// secret.
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { say, scriptedModel, startUpstream, type TestUpstream } from "tollgate/testing";
import type { CheckedConfig, ShownConfig } from "../../../src/admin/commands/config-commands.ts";
import type { ProvidersHealth } from "../../../src/admin/commands/provider-commands.ts";
import type { TestCallResult } from "../../../src/admin/commands/test-calls.ts";
import { getFault } from "../../../src/model/error.ts";
import { runCliInProcess } from "../../kit/process/command-line.ts";
import { askOnNewConnection, startDaemon, type Daemon } from "../../kit/process/daemon.ts";
import { isOtherStore } from "../../kit/database/store-under-test.ts";
import { until } from "../../kit/wait.ts";

const GOOD = "good-0123456789-0123456789";
const BAD = "bad-0123456789-0123456789";
const HIDDEN = "hidden-0123456789-0123456789";

let up: TestUpstream;
let at: Daemon;
let refuse = true;

beforeAll(async () => {
  const hello = say("ok").usage({ input: 10, output: 2 });
  up = await startUpstream(scriptedModel(hello, ["cheap", "dear", "gone"]));
  up.setRoutes({
    "POST /v1/chat/completions": (asked) =>
      refuse && String(asked.headers.authorization).includes(BAD)
        ? {
            status: 401,
            headers: { "content-type": "application/json" },
            body: `{"error":{"message":"no ${BAD}"}}`,
          }
        : hello.toResponse(asked),
  });
  at = await startDaemon({
    yaml: yaml(),
    files: { "note.txt": HIDDEN },
    env: { UP_KEY: GOOD, UP_BAD: BAD, UP_URL: `${up.url}/v1`, ELSEWHERE: HIDDEN },
  });
});
afterAll(async () => {
  await at?.[Symbol.asyncDispose]();
  await up?.close();
});

const yaml = (more = "") => `workers: 2
frontends: [chat-completions]
providers:
  up:
    use: openai-compatible
    when: "\${env:UP_KEY:-}"
    with: { base_url: "\${env:UP_URL}" }
    credentials:
      - { name: first, with: { api_key: "\${env:UP_KEY}" } }
      - { name: second, with: { api_key: "\${env:UP_BAD}" } }
    models:
      dear: { price: { input: 10, output: 50 } }
      cheap: { price: { input: 1, output: 5 } }
      gone: { price: { input: 0.1, output: 0.5 }, retires: 2020-01-01 }
  left: { use: demo, when: "" }
${more}`;

const ask = async <T>(command: string, input = {}) => (await at.ask(command, input)) as T;
const check = (text: string) => ask<CheckedConfig>("config.check", { text });
const listed = () => ask<ProvidersHealth>("providers.list");

describe("a test call", () => {
  it("is made once with each credential, to the cheapest available model, and is in the ledger", async () => {
    const { tests } = await ask<{ tests: TestCallResult[] }>("providers.test", { provider: "up" });
    expect(tests).toMatchObject([
      { credential: "first", ok: true, model: "cheap", status: 200, usd: "0.00002" },
      { credential: "second", ok: false, model: "cheap" },
    ]);
    expect(JSON.stringify(tests)).not.toContain(BAD);
    const calls = up.requests.filter(({ path }) => path.endsWith("/chat/completions"));
    expect(calls.map(({ headers }) => headers.authorization)).toEqual([
      `Bearer ${GOOD}`,
      `Bearer ${BAD}`,
    ]);
    const { rows } = await ask<{ rows: object[] }>("ledger.totals", {
      by: ["key", "frontend", "credential"],
    });
    expect(rows).toContainEqual(
      expect.objectContaining({
        by: { key: "operator", frontend: "providers.test", credential: "first" },
        calls: 1,
        costNano: "20000",
      }),
    );
    const first = tests[0] as Extract<TestCallResult, { ok: boolean; request: string }>;
    expect(await ask("requests.show", { id: first.request })).toMatchObject({
      requests: [{ record: { frontend: "providers.test", served: "up/cheap" } }],
    });
  });

  it("reports an unknown credential, model, or provider", async () => {
    const fault = (input: object) => ask("providers.test", input).then(() => undefined, getFault);
    expect(await fault({ provider: "upp" })).toMatchObject({ code: "no_such_provider" });
    expect(await fault({ provider: "up", credential: "third" })).toMatchObject({
      code: "no_such_credential",
    });
    const { tests } = await ask<{ tests: TestCallResult[] }>("providers.test", {
      provider: "up",
      credential: "first",
      model: "dear",
    });
    expect(tests).toMatchObject([{ credential: "first", model: "dear", ok: true, usd: "0.0002" }]);
  });
});

describe("the health of providers", () => {
  it("reports calls, the last failure, cooldowns in any process, and omitted providers", async () => {
    const statuses = await Promise.all(
      Array.from({ length: 12 }, () => askOnNewConnection(at, "up/cheap")),
    );
    expect(new Set(statuses)).toEqual(new Set([200]));
    await until(async () => ((await listed()).providers[0]!.lastHour?.requests ?? 0) >= 15);
    const { providers, unmountedProviders } = await listed();
    const [one] = providers;
    expect(one).toMatchObject({
      name: "up",
      protocols: ["chat-completions"],
    });
    expect(one!.lastHour!.firstTokenMs!.p95).toBeGreaterThan(0);
    expect(one!.lastHour!.failed).toBeGreaterThan(0);
    expect(one!.recentFaults[0]).toMatchObject({ kind: "upstream_auth", credential: "second" });
    expect(one!.pools.length).toBeGreaterThan(0);
    expect(one!.credentials.find(({ name }) => name === "second")!.cooldowns[0]).toMatchObject({
      state: "credential_rejected",
      reason: "upstream_auth",
    });
    expect(unmountedProviders).toMatchObject([{ provider: "left" }]);
    expect(JSON.stringify(providers)).not.toContain(BAD);
  });

  it("a provider that is reset has no cooldown in any process", async () => {
    refuse = false;
    expect(await ask("providers.reset", { provider: "up" })).toEqual({
      reset: ["first", "second"],
    });
    const { providers } = await listed();
    expect(providers[0]!.credentials.flatMap(({ cooldowns }) => cooldowns)).toEqual([]);
    expect((await ask<{ cooldowns: object[] }>("status")).cooldowns).toEqual([]);
  });

  it("is a table on the command line", async () => {
    const { out } = await runCliInProcess(["providers", "-c", at.file]);
    expect(out).toContain("calls 1h");
    const { out: tests, code } = await runCliInProcess(["providers", "test", "up", "-c", at.file]);
    expect([code, tests]).toEqual([0, expect.stringMatching(/^first +ok +cheap /)]);
  });
});

describe("the running config", () => {
  it("shows the source of each value", async () => {
    const { shownValues, text } = await ask<ShownConfig>("config.show");
    const of = (path: string) => shownValues.find((each) => each.path === path);
    expect(of("workers")).toEqual({
      path: "workers",
      value: 2,
      source: "file",
      location: `${at.file}:1:10`,
    });
    expect(of("listen.port")).toMatchObject({ source: "command line" });
    expect(of("request_history")).toMatchObject({ source: "default" });
    expect(of("frontends.chat-completions.use")).toMatchObject({
      source: "file",
      location: `${at.file}:2:13`,
    });
    expect(of("providers.up.with.base_url")).toMatchObject({
      source: "variable",
      value: "${env:UP_URL}",
    });
    expect(of("providers.up.credentials.first.with.api_key")).toMatchObject({
      source: "variable",
      value: "${env:UP_KEY}",
    });
    for (const secret of [GOOD, BAD])
      expect(JSON.stringify(shownValues) + text).not.toContain(secret);
  });
});

describe("a check of another config", () => {
  // The other file names no store, so it would change a gateway with another store.
  it.skipIf(isOtherStore)("reports problems with their location, and the changes", async () => {
    const wrong = await check(yaml("strickt: true\n"));
    expect(wrong).toMatchObject({ ok: false, problems: [{ id: "config/unknown-key", line: 16 }] });
    const fine = await check(
      yaml("strict: true\nlog: { level: warn }\n").replace("workers: 2", "workers: 3"),
    );
    expect(fine.problems).toEqual([]);
    expect(fine).toMatchObject({
      ok: true,
      restartKeys: ["workers"],
      assumedVariables: ["UP_KEY", "UP_BAD"],
      changes: expect.arrayContaining([
        { path: "strict", before: false, after: true },
        { path: "workers", before: 2, after: 3 },
      ]),
    });
    expect(await check(yaml())).toMatchObject({
      ok: true,
      changes: [],
      omittedChanges: 0,
      restartKeys: [],
    });
    expect(await check(yaml("proxy: { url: http://127.0.0.1:9 }\n"))).toMatchObject({
      ok: true,
      restartKeys: ["proxy"],
    });
  });

  // Each is quoted in a config error that contains the value of a variable or a file.
  const quoting = (of: string) => [
    yaml(`models: { a: "${of}/b" }`),
    yaml(`admin: { host: "${of}", tokens: {} }`),
    yaml(`public_url: "${of}"`),
    yaml(`log: { level: "${of}" }`),
    yaml(`listen: { host: "${of}" }`),
    yaml(`accounts: { a: { parent: "${of}" } }`),
    yaml(`middleware: [{ use: auth, with: { account: "${of}" } }]`),
    yaml(`state_dir: "${of}"`),
  ];
  it.each([
    "${env:UP_KEY}",
    "${env:ELSEWHERE}",
    "${file:./note.txt}",
    "${file:/etc/hostname}",
    "x${env:UP_BAD:-y}",
  ])("quotes nothing of %s", async (of) => {
    for (const text of quoting(of)) {
      const told = JSON.stringify(await check(text));
      for (const secret of [GOOD, BAD, HIDDEN])
        for (const part of [secret, secret.slice(0, 12)]) expect(told).not.toContain(part);
    }
  });

  it("does not reveal whether a guess of a secret is right", async () => {
    const guessed = (key: string) => check(yaml().replace('${env:UP_KEY}" } }', `${key}" } }`));
    const [right, wrong] = await Promise.all([
      guessed(GOOD),
      guessed("evil-0123456789-0123456789"),
    ]);
    expect(JSON.stringify(right)).toBe(JSON.stringify(wrong));
  });

  it("loads no code that is not mounted, and reads no other file", async () => {
    const code = await check(yaml("observers: [./evil.ts]\n"));
    expect(code).toMatchObject({ ok: false, problems: [{ id: "plugin/not-loaded" }] });
    const file = await check(yaml("include: /etc/passwd\n"));
    expect(file).toMatchObject({ ok: false, problems: [{ id: "config/file-missing" }] });
    expect(JSON.stringify(file)).not.toContain("root:");
  });

  it("is available on the command line", async () => {
    const { out, code } = await runCliInProcess(["config", "check", at.file, "-c", at.file]);
    expect([code, out]).toEqual([0, expect.stringContaining("No visible value changes")]);
    expect(
      (await runCliInProcess(["config", "show", "--no-defaults", "-c", at.file])).out,
    ).toContain("providers.up.use");
  });
});
