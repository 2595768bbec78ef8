// The files in examples/ behave as their pages describe: they keep the contract, and work in a
// gateway.
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { defineMiddleware, type Definition, type RequestRecord } from "tollgate/plugin";
import {
  conformanceChecks,
  createTestContext,
  startTestGateway,
  jsonResponse,
  protocolChecks,
  say,
  scriptedModel,
  storeChecks,
  startUpstream,
  type TestContext,
} from "tollgate/testing";
import acme from "../../examples/acme.ts";
import acmeCloud from "../../examples/acme-cloud.ts";
import acmeSigned from "../../examples/acme-signed.ts";
import cache from "../../examples/cache.ts";
import counter from "../../examples/counter.ts";
import fileStore from "../../examples/file-store.ts";
import guard from "../../examples/guard.ts";
import hooks from "../../examples/hooks.ts";
import lines from "../../examples/lines.ts";
import mail from "../../examples/mail.ts";
import mask from "../../examples/mask.ts";
import { lines as linesProtocol } from "../../examples/lines-protocol.ts";
import receipts from "../../examples/receipts.ts";
import requireTeam from "../../examples/require-team.ts";
import uploads from "../../examples/uploads.ts";
import redactor from "../../examples/redactor.ts";
import { reserveCommand, settleCommand } from "../../src/testing/store.ts";
import { officially } from "../clouds/aws-fake.ts";
import { foreign, importsOf } from "../layers.ts";
import { startDaemon, type Daemon } from "../kit/process/daemon.ts";
import { NIGHTLY } from "../kit/law-effort.ts";
import { ownCpuMs } from "../kit/process/cpu-time.ts";

const FOLDER = join(import.meta.dirname, "../../examples");

const plugins: Readonly<Record<string, Definition>> = {
  acme,
  "acme-cloud": acmeCloud,
  "acme-signed": acmeSigned,
  cache,
  counter,
  "file-store": fileStore,
  guard,
  hooks,
  lines,
  mail,
  mask,
  receipts,
  redactor,
  "require-team": requireTeam,
  uploads,
};

describe("every example", () => {
  it("imports only the public API, and starts with its own name", () => {
    for (const file of readdirSync(FOLDER).filter((name) => name.endsWith(".ts"))) {
      const source = readFileSync(join(FOLDER, file), "utf8");
      expect(source.split("\n")[0]).toBe(`// examples/${file}`);
      // Like a plugin next to others of its kind.
      for (const one of importsOf(source))
        expect(foreign(`plugins/examples/${file}`, one, ["tollgate-provider-aws"])).toBeUndefined();
    }
  });

  for (const definition of Object.values(plugins))
    for (const { name, run } of conformanceChecks(definition, {
      ...(definition === acme && { credential: { api_key: "canary-acme-7f3a" } }),
      ...(definition === acmeCloud && {
        credential: { client_id: "house", client_secret: "canary-cloud-9d2e" },
        fetch: async () => Response.json({ token: "t0" }),
      }),
      ...(definition === acmeSigned && {
        credential: { access_key_id: "house", secret_access_key: "canary-signed-4c1b" },
      }),
      ...((definition === guard || definition === mask) && { with: { words: ["tulip"] } }),
      ...(definition === mail && {
        with: { to: "ops@example.com", from: "gateway@example.com", sendmail: "/bin/true" },
      }),
    }))
      it(name, run);

  for (const { name, run } of protocolChecks(linesProtocol())) it(name, run);
});

/** A gateway with the examples, and an upstream that responds with "Hello". */
async function stage(yaml: string, credential = "") {
  const up = await startUpstream(scriptedModel(say("Hello"), ["large", "small"]));
  const at = await startTestGateway({
    plugins: { ...plugins, cut: oneKey },
    env: { ACME: "canary-acme-7f3a" },
    yaml: `${yaml}
providers:
  acme:
    use: acme
    with: { base_url: "${up.url}/v1"${credential ? "" : ', api_key: "${env:ACME}"'} }
    ${credential}`,
  });
  return {
    up,
    at,
    /** The request for a response, as received. */
    asked: () => up.requests.filter(({ method }) => method === "POST"),
    ask: (path: string, body: object, key = "tester") =>
      fetch(`${at.url}${path}`, {
        method: "POST",
        headers: { "content-type": "application/json", authorization: `Bearer ${key}` },
        body: JSON.stringify({ model: "acme/large", ...body }),
      }),
    async [Symbol.asyncDispose]() {
      await at[Symbol.asyncDispose]();
      await up[Symbol.asyncDispose]();
    },
  };
}

/** The key's owner is the key itself. */
const oneKey = defineMiddleware({
  api: 1,
  name: "cut",
  summary: "Takes every key for its own name",
  sends: "nowhere",
  setup: () => ({ admit: (x, secret) => x.identify({ id: secret ?? "none" }) }),
});

const CHAT = "/v1/chat/completions";
const user = (content: string) => ({ messages: [{ role: "user", content }] });

describe("the redactor", () => {
  it("masks email addresses and card numbers in every message of a conversation", async () => {
    await using it = await stage("frontends: [chat-completions]\nmiddleware: [cut, redactor]");
    const res = await it.ask(CHAT, {
      messages: [
        { role: "system", content: "Write to ann@example.org." },
        { role: "user", content: "I am bob.b+x@mail.example.com, card 4111 1111 1111 1111." },
        {
          role: "assistant",
          tool_calls: [
            {
              id: "c1",
              type: "function",
              function: { name: "mail", arguments: '{"to":"ann@example.org"}' },
            },
          ],
        },
        { role: "tool", tool_call_id: "c1", content: "sent to ann@example.org" },
      ],
    });
    expect(res.status, await res.clone().text()).toBe(200);
    const sent = it.asked()[0]!.body.toString();
    expect(sent).not.toMatch(/@|4111/);
    expect(sent.match(/\[email\]/g)).toHaveLength(4);
    expect(sent).toContain("[card number]");
  });

  it("rejects content that it cannot inspect, if configured", async () => {
    const picture = { type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } };
    const body = {
      messages: [{ role: "user", content: [{ type: "text", text: "This?" }, picture] }],
    };
    for (const [text_only, status] of [
      [false, 200],
      [true, 403],
    ] as const) {
      await using it = await stage(
        `frontends: [chat-completions]\nmiddleware: [cut, { use: redactor, with: { text_only: ${text_only} } }]`,
      );
      expect((await it.ask(CHAT, body)).status).toBe(status);
      expect((await it.ask(CHAT, user("Hi"))).status).toBe(200);
      expect(it.asked()).toHaveLength(status === 200 ? 2 : 1);
    }
  });

  it("takes linear time", async () => {
    await using it = await stage("frontends: [chat-completions]\nmiddleware: [cut, redactor]");
    const spent = async (length: number) => {
      const before = ownCpuMs();
      expect((await it.ask(CHAT, user("a.".repeat(length)))).status).toBe(200);
      return ownCpuMs() - before;
    };
    const small = await spent(100_000);
    // Five times as much. Quadratic time would be twenty-five times.
    expect(await spent(500_000)).toBeLessThan(15 * Math.max(small, 20));
  });
});

describe("the shortest middleware", () => {
  it("rejects a request without its header, and no provider is called", async () => {
    await using it = await stage("frontends: [chat-completions]\nmiddleware: [cut, require-team]");
    const rejected = await it.ask(CHAT, user("Hi"));
    expect([rejected.status, await rejected.text()]).toEqual([
      400,
      expect.stringContaining("Missing header x-team"),
    ]);
    expect(it.asked()).toEqual([]);
  });
});

describe("the middleware with every hook", () => {
  it("behaves as its page describes each hook", async () => {
    await using it = await stage("frontends: [chat-completions]\nmiddleware: [cut, hooks]");
    const ask = (team: string, body: object) =>
      fetch(`${it.at.url}${CHAT}`, {
        method: "POST",
        headers: {
          "content-type": "application/json",
          authorization: "Bearer ann",
          "x-team": team,
        },
        body: JSON.stringify({ model: "acme/large", user: "ann", ...user("Hi"), ...body }),
      });
    expect((await ask("no team!", {})).status).toBe(400);
    const tools = Array.from({ length: 65 }, (_, i) => ({
      type: "function",
      function: { name: `tool${i}` },
    }));
    expect((await ask("web", { tools })).status).toBe(400);
    const res = await ask("web", {});
    expect([res.status, res.headers.get("x-upstream-status")]).toEqual([200, "200"]);
    expect(await res.text()).toContain("Hello");
    const [sent] = it.asked();
    expect(it.asked()).toHaveLength(1);
    expect(sent!.body.toString()).toContain("Answer in English.");
    // `edit` has removed it, so the provider's own quirk has no effect.
    expect(sent!.headers).not.toHaveProperty("x-acme-user");
    expect(sent!.headers["x-request-id"]).toBe(res.headers.get("x-request-id"));
    expect(it.at.storeCommands.find((row) => row.do === "reserve")).toMatchObject({
      labels: { team: "web", tools: "0" },
    });
  });
});

describe("the cache", () => {
  const YAML = "frontends: [chat-completions]\nmiddleware: [cut, cache]";

  it.each([false, true])("answers the second request itself, stream: %s", async (stream) => {
    await using it = await stage(YAML);
    const first = await it.ask(CHAT, { ...user("Hi"), stream });
    const text = await first.text();
    expect(first.headers.get("x-cache")).toBe("miss");
    const second = await it.ask(CHAT, { ...user("Hi"), stream });
    expect(await second.text()).toBe(text);
    expect(second.headers.get("x-cache")).toBe("hit");
    expect(second.headers.get("content-type")).toBe(first.headers.get("content-type"));
    expect(it.asked()).toHaveLength(1);
    expect(it.at.storeCommands.filter((row) => row.do === "reserve")).toHaveLength(1);
  });

  it("calls the provider again for another key, text, or model, and for a non-streaming request after a streaming one", async () => {
    await using it = await stage(YAML);
    for (const [body, key] of [
      [user("Hi"), "ann"],
      [user("Hi"), "bob"],
      [user("Ho"), "ann"],
      [{ ...user("Hi"), model: "acme/small" }, "ann"],
      [{ ...user("Hi"), stream: true }, "ann"],
    ] as const)
      await (await it.ask(CHAT, body, key)).text();
    expect(it.asked()).toHaveLength(5);
  });
});

describe("the cache, under Service-ZDR", () => {
  const DECLARED =
    'credentials: [{ name: main, with: { api_key: "${env:ACME}" }, zdr: { declared: true } }]';

  it("stores nothing and returns nothing that it stored before", async () => {
    await using it = await stage(
      "frontends: [chat-completions]\nmiddleware: [cut, zdr, cache]",
      DECLARED,
    );
    const ask = async (zdr?: string) => {
      const res = await fetch(`${it.at.url}${CHAT}`, {
        method: "POST",
        headers: {
          "content-type": "application/json",
          authorization: "Bearer ann",
          ...(zdr && { "service-zdr": zdr }),
        },
        body: JSON.stringify({ model: "acme/large", ...user("Hi") }),
      });
      expect(await res.text()).toContain("Hello");
      return res.headers.get("x-cache");
    };
    expect([await ask(), await ask(), await ask("required"), await ask("required")]).toEqual([
      "miss",
      "hit",
      null,
      null,
    ]);
    expect(it.asked()).toHaveLength(3);
  });
});

describe("the guard", () => {
  const WORDS = 'words: ["tulip", "Hello there"]';
  const guarded = (more = "") =>
    `frontends: [chat-completions, lines]\nmiddleware: [cut, { use: guard, with: { ${WORDS}${more} } }]`;
  const asked = [
    ["/v1/chat/completions", user("Any Tulips?")],
    ["/lines", { prompt: "Any Tulips?" }],
  ] as const;

  it("rejects a word in both modes, and calls no provider", async () => {
    await using it = await stage(guarded());
    for (const [path, body] of asked)
      for (const stream of [false, true]) {
        const res = await it.ask(path, { ...body, stream });
        expect([res.status, await res.text()]).toEqual([
          400,
          expect.stringContaining("a word that is not allowed"),
        ]);
      }
    expect([it.asked(), it.at.storeCommands]).toEqual([[], []]);
  });

  it("returns a refusal in the client's own protocol, with a row of its own", async () => {
    await using it = await stage(guarded(', answer: "Let us not speak of flowers."'));
    for (const [path, body] of asked)
      for (const stream of [false, true]) {
        const res = await it.ask(path, { ...body, stream });
        expect([res.status, await res.text()]).toEqual([
          200,
          expect.stringContaining("not speak of flowers"),
        ]);
      }
    expect(it.asked()).toEqual([]);
    const rows = it.at.storeCommands.filter((row) => row.do === "reserve" || row.do === "settle");
    expect(rows).toHaveLength(8);
    for (const row of rows)
      expect(row).toMatchObject(
        row.do === "reserve"
          ? { labels: { guard: "matched" }, holdNano: 0n }
          : { state: "void", costNano: 0n, outcome: "middleware" },
      );
    const clean = await it.ask(CHAT, user("Any roses?"));
    expect(await clean.text()).toContain("Hello");
  });

  it("stops a response at a word, however the word is split", async () => {
    await using it = await stage(guarded());
    const words = say("Hel").say("lo th").say("ere, stranger");
    it.up.setRoutes({
      "POST /v1/chat/completions": (asked) => ({ ...words.toResponse(asked), chunks: "bytes" }),
    });
    for (const [path] of asked)
      for (const stream of [false, true]) {
        const body = path === "/lines" ? { prompt: "Hi" } : user("Hi");
        const text = await (await it.ask(path, { ...body, stream })).text();
        expect(text).toContain("stopped at a word that is not allowed");
        expect(text).not.toContain("stranger");
      }
    expect(it.asked()).toHaveLength(4);
  });
});

/** The text of a response, streaming or not, in the format of either frontend. */
const textOf = (answer: string): string =>
  Array.from(answer.matchAll(/"(?:content|text)":"([^"]*)"/g), ([, text]) => text).join("");

describe("the mask", () => {
  it("replaces words in a response, however the text is split into deltas", async () => {
    await using it = await stage(
      'frontends: [chat-completions, lines]\nmiddleware: [cut, { use: mask, with: { words: ["tul", "Tulip", "red rose"] } }]',
    );
    const text = "A tulip, a TULip, a tul, a red rose, and a red";
    const [first, ...more] = [[text], [...text], text.split(/(?<=tu|a |red )/)].map((pieces) =>
      pieces.slice(1).reduce((answer, piece) => answer.say(piece), say(pieces[0]!)),
    );
    for (const answer of [first!, ...more]) {
      it.up.setRoutes({ "POST /v1/chat/completions": (asked) => answer.toResponse(asked) });
      for (const [path, body] of [
        [CHAT, user("Hi")],
        ["/lines", { prompt: "Hi" }],
      ] as const)
        for (const stream of [false, true]) {
          const got = textOf(await (await it.ask(path, { ...body, stream })).text());
          expect(got).toBe("A [removed], a [removed], a [removed], a [removed], and a red");
        }
    }
  });
});

describe("the provider", () => {
  it("is listed, and its quirk is applied", async () => {
    await using it = await stage("frontends: [chat-completions]\nmiddleware: [cut]");
    const res = await it.ask(CHAT, { ...user("Hi"), user: "ann", max_tokens: 9 });
    expect(await res.text()).toContain("Hello");
    const [asked] = it.asked();
    expect(asked!.headers["x-acme-user"]).toBe("ann");
    expect(asked!.headers.authorization).toBe("Bearer canary-acme-7f3a");
    expect(asked!.json()).not.toHaveProperty("user");
    expect(asked!.json().max_tokens).toBe(9);
  });
});

describe("the provider with tokens", () => {
  it("fetches one token for many requests, and another after it expires", async () => {
    let good = 0;
    let fetched = 0;
    const hello = say("Hello");
    await using up = await startUpstream({
      "POST /token": (asked) => {
        fetched++;
        const { client_secret } = asked.json() as { client_secret?: string };
        return client_secret === "canary-cloud-9d2e"
          ? jsonResponse({ token: `t${good}` })
          : jsonResponse({ error: "no" }, 401);
      },
      "POST /v1/chat/completions": (asked) =>
        asked.headers.authorization === `Bearer t${good}`
          ? hello.toResponse(asked)
          : jsonResponse({ error: { message: "The token has expired." } }, 401),
    });
    await using at = await startTestGateway({
      plugins: { ...plugins, cut: oneKey },
      yaml: `frontends: [chat-completions, lines]
middleware: [cut]
providers:
  cloud: { use: acme-cloud, with: { base_url: "${up.url}", client_id: house, client_secret: canary-cloud-9d2e } }`,
    });
    const ask = async (path: string, body: object) => {
      const res = await fetch(`${at.url}${path}`, {
        method: "POST",
        headers: { "content-type": "application/json", authorization: "Bearer x" },
        body: JSON.stringify({ model: "cloud/large", ...body }),
      });
      return [res.status, (await res.text()).includes("Hello")];
    };
    const asked = [
      [CHAT, user("Hi")],
      [CHAT, { ...user("Hi"), stream: true }],
      ["/lines", { prompt: "Hi" }],
      ["/lines", { prompt: "Hi", stream: true }],
    ] as const;
    for (const round of [1, 2, 3]) {
      const got = await Promise.all(asked.map(([path, body]) => ask(path, body)));
      expect(got).toEqual(asked.map(() => [200, true]));
      expect(fetched).toBe(round);
      good++;
    }
    const states = at.storeCommands.flatMap((row) => (row.do === "settle" ? [row.outcome] : []));
    expect(states).toEqual(Array(12).fill("ok"));
    expect(JSON.stringify(at.logs)).not.toContain("canary-cloud");
  });
});

describe("the provider with signatures", () => {
  it("signs the bytes that are sent, in both modes, streaming or not", async () => {
    await using up = await startUpstream(scriptedModel(say("Hello")));
    await using at = await startTestGateway({
      plugins: { ...plugins, cut: oneKey },
      yaml: `frontends: [chat-completions, lines]
middleware: [cut]
providers:
  signed:
    use: acme-signed
    with: { base_url: "${up.url}/v1", region: eu-west-1, access_key_id: house, secret_access_key: canary-signed-4c1b }`,
    });
    for (const [path, body] of [
      [CHAT, user("Hi")],
      [CHAT, { ...user("Hi"), stream: true }],
      ["/lines", { prompt: "Hi" }],
    ] as const) {
      const res = await fetch(`${at.url}${path}`, {
        method: "POST",
        headers: { "content-type": "application/json", authorization: "Bearer x" },
        body: JSON.stringify({ model: "signed/large", ...body }),
      });
      expect(await res.text()).toContain("Hello");
    }
    const sent = up.requests.filter(({ method }) => method === "POST");
    expect(sent).toHaveLength(3);
    for (const { method, path, headers, body } of sent) {
      const stamp = String(headers["x-amz-date"]);
      const url = new URL(path, up.url);
      const theirs = await officially(
        { id: "house", secret: "canary-signed-4c1b" },
        {
          method,
          url,
          headers: {
            host: url.host,
            "content-type": String(headers["content-type"]),
            "x-amz-content-sha256": String(headers["x-amz-content-sha256"]),
          },
          body,
          region: "eu-west-1",
          service: "acme",
          now: new Date(
            stamp.replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/, "$1-$2-$3T$4:$5:$6Z"),
          ),
        },
      );
      expect(headers["authorization"]).toBe(theirs["authorization"]);
    }
  });
});

describe("the frontend and its protocol", () => {
  it("respond in lines, with an error format of their own, and without a model", async () => {
    await using it = await stage("frontends: [lines]\nmiddleware: [cut]");
    const whole = await it.ask("/lines", { prompt: "Hi", max: 9 });
    expect(await whole.json()).toMatchObject({ text: "Hello", done: "stop", usage: { input: 10 } });
    expect(it.asked()[0]!.json()).toMatchObject({ max_tokens: 9 });
    const streamed = await it.ask("/lines", { prompt: "Hi", stream: true });
    expect(streamed.headers.get("content-type")).toBe("application/x-ndjson");
    const said = (await streamed.text()).trim().split("\n");
    expect(said.map((line) => JSON.parse(line))).toMatchObject([
      { text: "Hello" },
      { done: "stop", usage: { input: 10, output: 5 } },
    ]);
    const wrong = await it.ask("/lines", {});
    expect(wrong.status).toBe(400);
    expect(await wrong.json()).toMatchObject({ error: { kind: "invalid" } });
    const health = await fetch(`${it.at.url}/lines/health`);
    expect(await health.json()).toEqual({ ok: true });
  });
});

describe("the receipts", () => {
  const ADMIN = `admin: { port: 0, tokens: { me: { role: viewer, token: "${"t".repeat(24)}" } } }`;

  it("are returned to the key that made the request, and counted for an operator", async () => {
    await using it = await stage(
      `${ADMIN}\nfrontends: [chat-completions]\nmiddleware: [cut, receipts]`,
    );
    const res = await it.ask(CHAT, user("Hi"), "ann");
    await res.text();
    const id = res.headers.get("x-request-id")!;
    const receipt = (key: string, of = id) =>
      fetch(`${it.at.url}/v1/receipts/${of}`, { headers: { authorization: `Bearer ${key}` } });
    const mine = await receipt("ann");
    expect(await mine.json()).toEqual({ status: 200, model: "acme/large", cost_nano: null });
    for (const other of [await receipt("bob"), await receipt("ann", "none")])
      expect(other.status).toBe(404);
    const list = (token: string) =>
      fetch(`${it.at.adminUrl}/receipts`, { headers: { authorization: `Bearer ${token}` } });
    expect(await (await list("t".repeat(24))).json()).toEqual({ receipts: 1 });
    expect((await list("ann")).status).toBe(401);
  });

  it("contain no private content, and are limited in number", async () => {
    await using it = await stage(
      `${ADMIN}\nfrontends: [chat-completions]\nmiddleware: [cut, { use: receipts, with: { max_receipts: 2 } }]`,
    );
    for (let n = 0; n < 3; n++) await (await it.ask(CHAT, user("Hi"))).text();
    const list = await fetch(`${it.at.adminUrl}/receipts`, {
      headers: { authorization: `Bearer ${"t".repeat(24)}` },
    });
    expect(await list.json()).toEqual({ receipts: 2 });
  });
});

describe("uploads", () => {
  it("number the lines of a file, chunk by chunk, also with a key in the URL", async () => {
    await using it = await stage("frontends: [uploads]\nmiddleware: [cut]");
    const send = (form: FormData) =>
      fetch(`${it.at.url}/uploads?key=tester`, { method: "POST", body: form });
    const form = new FormData();
    form.set("file", new Blob(["a\nb"]), "x.txt");
    const res = await send(form);
    expect([res.status, await res.text()]).toEqual([200, "1 a\n2 b\n"]);
    expect(res.headers.get("content-type")).toBe("text/plain; charset=utf-8");
    form.set("file", "a text");
    expect((await send(form)).status).toBe(400);
  });
});

describe("the observer", () => {
  it("counts requests by status", async () => {
    const { ctx, end } = createTestContext();
    const it = await counter.setup({}, ctx);
    const record = (status: number) => ({ status }) as RequestRecord;
    await it.onRequests?.([record(200), record(429)]);
    await it.onRequests?.([record(200)]);
    expect(await it.commands?.["counts"]?.run({})).toEqual({ 200: 2, 429: 1 });
    await end();
  });
});

describe("the store", () => {
  const kept = () => {
    const folder = mkdtempSync(join(tmpdir(), "tollgate-example-"));
    const file = join(folder, "ledger.jsonl");
    const lent: TestContext[] = [];
    const made = async () => {
      const one = createTestContext({ id: "store" });
      lent.push(one);
      return fileStore.setup({ file }, one.ctx);
    };
    const end = async () => {
      for (const one of lent) await one.end();
      rmSync(folder, { recursive: true, force: true });
    };
    return { file, made, end };
  };

  for (const { name, run } of storeChecks(async () => {
    const { made, end } = kept();
    return { store: await made(), crash: made, dispose: end };
  }))
    it(name, run);

  it("ignores a truncated last line, which was never acknowledged", async () => {
    const { file, made, end } = kept();
    onTestFinished(end);
    const store = await made();
    await store.open({ instance: "one" });
    await store.apply([reserveCommand("a"), settleCommand("a")]);
    const whole = readFileSync(file);
    await store.apply([reserveCommand("b")]);
    const longer = readFileSync(file);
    for (const cut of [whole.length, whole.length + 1, longer.length - 1]) {
      writeFileSync(file, longer.subarray(0, cut));
      const next = await made();
      expect(await next.open({ instance: "two" })).toEqual({ epoch: 2, recovered: 0 });
      expect((await next.listEntries({})).items).toHaveLength(2);
      expect(readFileSync(file).subarray(0, whole.length)).toEqual(whole);
    }
  });

  it.runIf(NIGHTLY)(
    "keeps the ledger of a killed gateway, and recovers its open calls",
    async () => {
      const source = readFileSync(join(FOLDER, "file-store.ts"), "utf8");
      const yaml = `frontends: [chat-completions]
middleware: [auth]
store: { use: ./file-store.ts }
providers: { demo: { use: demo } }`;
      const ask = (at: Daemon, key: string) =>
        fetch(`${at.url}${CHAT}`, {
          method: "POST",
          headers: { "content-type": "application/json", authorization: `Bearer ${key}` },
          body: JSON.stringify({ model: "demo/echo", ...user("Hi") }),
        }).then((answer) => answer.status);
      const files = { "file-store.ts": source };
      const first = await startDaemon({ yaml, files });
      onTestFinished(() => rmSync(first.dir, { recursive: true, force: true }));
      expect(await ask(first, first.key)).toBe(200);
      first.kill("SIGKILL");
      await first.exit;
      await using next = await startDaemon({ yaml, files, dir: first.dir });
      expect(await ask(next, first.key)).toBe(200);
      const { items } = (await next.ask("ledger.entries", {})) as { items: { kind: string }[] };
      expect(items.map(({ kind }) => kind)).toEqual(["reserve", "settle", "reserve", "settle"]);
    },
  );
});
