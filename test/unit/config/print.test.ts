import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { stringify } from "yaml";
import { loadConfig } from "../../../src/config/load-config.ts";
import { listSecrets } from "../../../src/config/show-config.ts";
import { formatProblems, formatProblemsJson } from "../../../src/config/problem-report.ts";
import { load } from "./stubs.ts";
import { trialCount } from "../../kit/law-effort.ts";

const file = "/etc/tollgate/gateway.yaml";
const env = {
  KEY: "sk-outside-1",
  PORT: "9000",
  HOOK: "hook-secret",
  GRAPHS: "graphs-secret-of-24-letters",
  MODEL: "gpt-6",
  EMPTY: "",
};
const read = (text: string, also: Record<string, string> = {}) =>
  loadConfig(file, { env: { ...env, ...also }, loadPlugin: load, textOverride: text });

const FULL = `
listen: { port: "\${env:PORT}", hosts: [llm.test] }
public_url: https://llm.test
max_body: 1MB
timeouts: { idle: 90s }
admin:
  port: 9800
  tokens: { graphs: { role: metrics, token: "\${env:GRAPHS}" }, me: { role: owner, token: literal-secret-of-24-characters } }
store: { use: sqlite, with: { durability: process } }
frontends: [messages]
accounts: { acme: { limits: [usd=12.50/month] }, web: { parent: acme, labels: { team: "\${env:MODEL}" } } }
observers: [{ use: watch, with: { token: literal-secret-6 } }]
middleware:
  - auth
  - use: guard
    for: { models: [fast] }
    with:
      words: ["$\${not a variable}"]
      webhook: { url: https://hooks.test, headers: { x-one: "\${env:HOOK}", x-two: literal-secret-2 } }
providers:
  demo:
  openai:
    when: "\${env:KEY}"
    with: { api_key: "Key \${env:KEY} \${env:EMPTY:-fallback-secret-3}", region: eu }
    timeouts: { total: 60s }
    models: { gpt-6: { price: { input: 2.5 } } }
  anthropic:
    trust_policy: true
    credentials:
      - { name: a, with: { api_key: literal-secret-4 }, zdr: { declared: true }, weight: 2 }
      - { name: b, with: { api_key: "\${env:KEY}" } }
  third: { use: openai, when: 0, with: { api_key: secret-of-the-unmounted-5 } }
models:
  fast: ["openai/\${env:MODEL}", anthropic/x]
  one: demo/echo
  later: third/x
`;
const SECRETS = [
  "sk-outside-1",
  "hook-secret",
  "literal-secret-2",
  "fallback-secret-3",
  "literal-secret-4",
  "secret-of-the-unmounted-5",
  "literal-secret-6",
  "graphs-secret-of-24-letters",
  "literal-secret-of-24-characters",
];

describe("print", () => {
  it("shows every default and the source of values, and no secret", async () => {
    const { print, problems } = await read(FULL);
    expect(problems.filter((p) => p.severity === "error")).toEqual([]);
    expect(print()).toMatchInlineSnapshot(`
      "# /etc/tollgate/gateway.yaml with defaults. Variables are shown as written, secrets are hidden

      listen:
        host: 127.0.0.1
        port: \${env:PORT}
        hosts: [ llm.test ]
        origins: []
      admin:
        host: 127.0.0.1
        port: 9800
        hosts: []
        behind_proxy: false
        tokens:
          graphs:
            role: metrics
            token: \${env:GRAPHS}
          me:
            role: owner
            token: "[secret]"
      workers: 1
      shutdown:
        timeout: 300s
      timeouts:
        connect: 5s
        first_byte: 600s
        idle: 90s
        total: 3600s
        classes:
          quick:
            first_byte: 60s
        client_write: 60s
        client_ping: 15s
      public_url: https://llm.test
      state_dir: /etc/tollgate/.tollgate
      allow_empty: false
      strict: false
      response_headers: []
      retries:
        per_target: 2
        total: 3
      max_body: 1MB
      bounds:
        in_flight: 256MiB
        json_values: 100000
        response: 64MiB
        connections: 10000
        connections_per_address: 2000
        socket_message: 16MiB
      overload:
        max_concurrent: 10000
        max_queue_wait: 250ms
      catalog:
        refresh: 10m
      files:
        lifetime: 1h
        max_file: 64MiB
        max_key: 1GiB
        max_total: 2GiB
      request_history: 10000
      log:
        level: info
        slow_request: 10s
      ledger: {}
      plugins: {}
      store:
        use: sqlite
        with:
          durability: process
      frontends:
        - use: messages
      middleware:
        - use: auth
          with:
            anonymous: false
            keys: []
          timeout: 30s
          on_error: reject
          trust_policy: false
        - use: guard
          with:
            words: [ "$\${not a variable}" ]
            webhook:
              url: https://hooks.test
              headers:
                x-one: \${env:HOOK}
                x-two: "[secret]"
          for:
            models: [ fast ]
          timeout: 30s
          on_error: reject
          trust_policy: false
      observers:
        - use: watch
          with:
            token: "[secret]"
      providers:
        demo:
          use: demo
          trust_policy: false
          state_mode: reject
          trace: off
          on_disconnect: cancel
          require_ready: false
        openai:
          use: openai
          with:
            region: eu
            api_key: "[secret]\${env:KEY}[secret]\${env:EMPTY:-[secret]}"
          when: \${env:KEY}
          trust_policy: false
          state_mode: reject
          trace: off
          on_disconnect: cancel
          require_ready: false
          timeouts:
            total: 60s
          models:
            gpt-6:
              price:
                input: 2.5
        anthropic:
          use: anthropic
          with:
            region: us
          credentials:
            - name: a
              with:
                api_key: "[secret]"
              zdr:
                declared: true
              weight: 2
            - name: b
              with:
                api_key: \${env:KEY}
              weight: 1
          trust_policy: true
          state_mode: reject
          trace: off
          on_disconnect: cancel
          require_ready: false
        third:
          # not mounted: its when: value is 0
          use: openai
          when: 0
      accounts:
        acme:
          limits: [ usd=12.50/month ]
        web:
          parent: acme
          labels:
            team: \${env:MODEL}
      scopes: {}
      views: {}
      models:
        fast:
          candidates: [ "openai/\${env:MODEL}", anthropic/x ]
          pick: ordered
          fallback_on: [ unsupported, rate_limited, overloaded, timeout, upstream, upstream_auth, upstream_quota ]
        one:
          candidates: [ demo/echo ]
          pick: ordered
          fallback_on: [ unsupported, rate_limited, overloaded, timeout, upstream, upstream_auth, upstream_quota ]
        later:
          candidates: [ third/x ]
          pick: ordered
          fallback_on: [ unsupported, rate_limited, overloaded, timeout, upstream, upstream_auth, upstream_quota ]
      "
    `);
    for (const secret of SECRETS) expect(print() + print(true)).not.toContain(secret);
  });

  it("prints the same as JSON", async () => {
    const { print } = await read(FULL);
    const json = JSON.parse(print(true));
    expect(json.listen).toEqual({
      host: "127.0.0.1",
      port: "${env:PORT}",
      hosts: ["llm.test"],
      origins: [],
    });
    expect(json.providers.openai.with.api_key).toBe(
      "[secret]${env:KEY}[secret]${env:EMPTY:-[secret]}",
    );
    expect(json.models.fast.candidates).toEqual(["openai/${env:MODEL}", "anthropic/x"]);
  });

  it("prints an equivalent config that prints the same again", async () => {
    const value = fc.constantFrom(
      "${env:KEY}",
      "plain",
      "$${env:KEY}",
      "a ${env:MODEL} b",
      "{",
      "0123",
      "true",
      "- x",
      "# y",
      "é\\n",
    );
    const config = fc.record(
      {
        listen: fc.record(
          {
            port: fc.constantFrom(1, "${env:PORT}"),
            origins: fc.constantFrom([], ["https://a.test"]),
          },
          { requiredKeys: [] },
        ),
        shutdown: fc.constantFrom("1s", "90s", "250ms", "2h", "${env:DRAIN}"),
        max_body: fc.constantFrom(1, 1000, "2MB", "1GiB"),
        workers: fc.constantFrom(3, "auto"),
        providers: fc.record(
          {
            demo: fc.constantFrom(null, {}, "demo", { use: "demo", state_mode: "relay" }),
            openai: fc.record(
              {
                with: fc.record({ api_key: fc.constant("${env:KEY}"), label: value }),
                timeouts: fc.constant({ idle: "7s" }),
              },
              { requiredKeys: ["with"] },
            ),
            off: fc.constant({ use: "demo", when: "${env:EMPTY:-}" }),
          },
          { requiredKeys: ["demo"] },
        ),
        models: fc.constantFrom(
          {},
          { a: "demo/x" },
          { "p-*": ["demo/*"], q: "p-1" },
          { z: { candidates: ["demo/x"], fallback_on: ["timeout"] } },
        ),
      },
      { requiredKeys: ["providers"] },
    );
    await fc.assert(
      fc.asyncProperty(config, async (given) => {
        const also = { DRAIN: "3m" };
        const first = await read(stringify(given), also);
        expect(first.problems).toEqual([]);
        const again = await read(first.print(), also);
        expect(again.problems).toEqual([]);
        expect(again.config!.hash).toBe(first.config!.hash);
        expect(again.print()).toBe(first.print());
        const json = await read(first.print(true), also);
        expect(json.config!.hash).toBe(first.config!.hash);
      }),
      { numRuns: trialCount(100) },
    );
  });
});

describe("secretsOf", () => {
  it("returns every resolved secret of the schema, the longest first", async () => {
    const { config } = await read(FULL);
    expect(listSecrets(config!)).toEqual([
      "Key sk-outside-1 fallback-secret-3",
      "literal-secret-of-24-characters",
      "graphs-secret-of-24-letters",
      "literal-secret-2",
      "literal-secret-6",
      "literal-secret-4",
      "sk-outside-1",
      "hook-secret",
    ]);
  });
});

describe("printed problems", () => {
  const BROKEN =
    "listen: { prot: 1 }\nstore: postgers\nmodels: { x: demo/y }\nproviders: { demo: { when: 0 } }\n";
  it("as JSON: whether the config is valid, and each problem with its location", async () => {
    const { problems } = await read(BROKEN);
    const json = JSON.parse(formatProblemsJson(problems));
    expect(json.ok).toBe(false);
    expect(json.problems).toEqual(problems);
    expect(json.problems[0]).toEqual({
      id: "config/unknown-key",
      severity: "error",
      file,
      line: 1,
      column: 11,
      path: "listen.prot",
      message: 'unknown key "prot"',
      hint: 'did you mean "port"?',
      frame: "> 1 | listen: { prot: 1 }\n    |           ^^^^",
    });
    expect(JSON.parse(formatProblemsJson([]))).toEqual({ ok: true, problems: [] });
  });
  it("with colors have the same text", async () => {
    const { problems } = await read(BROKEN);
    const plain = formatProblems(problems);
    const colour = formatProblems(problems, { useColor: true });
    expect(colour).toContain("\u001B[31merror\u001B[39m");
    // eslint-disable-next-line no-control-regex
    expect(colour.replaceAll(/\u001B\[\d+m/g, "")).toBe(plain);
    expect(plain).toMatch(/2 errors, 1 note\n$/);
    expect(formatProblems([])).toBe("");
  });
  it("name files relative to the current directory, others absolutely", async () => {
    const { problems } = await read(BROKEN);
    expect(formatProblems(problems, { baseDir: "/etc" })).toMatch(
      /^tollgate\/gateway\.yaml:1:11 {2}error/,
    );
    expect(formatProblems(problems, { baseDir: "/home" })).toMatch(
      /^\/etc\/tollgate\/gateway\.yaml:1:11/,
    );
  });
  it("hide a secret in a file that cannot be parsed, also in a default", async () => {
    const { problems } = await read(
      'providers:\n  openai:\n    with: { api_key: "sk-live-77", token: abc-88 }\n   x: [\n',
    );
    expect(problems[0]!.id).toBe("config/syntax");
    const other = await read("x:\n  api_key: ${env:A:-sk-live-77}\n  token: abc-88\n y: 1\n");
    expect(other.problems[0]!.frame).toContain("api_key: ${env:A:-**********}");
    expect(formatProblems(problems)).not.toMatch(/sk-live-77|abc-88/);
  });
  it("show that a client sends its own credential, which is no secret", async () => {
    const { problems } = await read(
      'providers:\n  max:\n    credential: client\n    "credential": "client"\n   x: [\n',
    );
    const shown = formatProblems(problems);
    expect(shown).toContain("credential: client");
    const other = await read("x:\n  credential: clients-own\n  api_credential: client\n y: 1\n");
    expect(formatProblems(other.problems)).not.toMatch(/clients-own|: client$/m);
  });
});
