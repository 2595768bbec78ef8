// Service-ZDR through a whole gateway: every value, default, and protocol, and the upstream's
// actual requests.
import { request } from "node:http";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { startInProcess, type InProcessGateway } from "../../kit/in-process.ts";
import {
  ENTRY_POINTS,
  headersOf,
  heard,
  providersOf,
  startZdrUpstreams,
  type EntryPoint,
  type ZdrUpstreams,
} from "../../rig/privacy/zdr-upstreams.ts";

const CHAIN = (zdr: string) =>
  `frontends: [chat-completions, messages, responses, images, models]\nmiddleware: [auth, ${zdr}, limits, usage]\nstore: memory\n`;

interface Answered {
  status: number;
  headers: Record<string, string | string[] | undefined>;
  body: any;
}

/** With exactly these header lines: two lines stay two. */
function ask(
  gateway: InProcessGateway,
  door: EntryPoint,
  body: object,
  of: { zdr?: readonly string[]; key?: string; path?: string; method?: string } = {},
): Promise<Answered> {
  const { key = gateway.key, zdr = [], path = ENTRY_POINTS[door].path, method = "POST" } = of;
  return new Promise((resolve, reject) => {
    const sent = request(
      gateway.url + path,
      {
        method,
        headers: {
          ...headersOf(door, key),
          ...(zdr.length > 0 && { "service-zdr": zdr as string[] }),
        },
      },
      (res) => {
        const parts: Buffer[] = [];
        res.on("data", (part: Buffer) => parts.push(part));
        res.on("end", () => {
          const text = Buffer.concat(parts).toString();
          let parsed: unknown = text;
          try {
            parsed = JSON.parse(text);
          } catch {}
          resolve({ status: res.statusCode!, headers: res.headers, body: parsed });
        });
      },
    );
    sent.on("error", reject);
    sent.end(method === "POST" ? JSON.stringify(body) : undefined);
  });
}

const say = (door: EntryPoint, model: string, more: object = {}) => ({
  ...ENTRY_POINTS[door].body(model, "A private word", false),
  ...more,
});
const codeOf = ({ body }: Answered): string => body.error.code ?? body.error.details?.error_code;
const paramOf = ({ body }: Answered): string => body.error.param ?? body.error.details?.param;
const detailsOf = ({ body }: Answered): any => body.error.details;

let up: ZdrUpstreams;
beforeAll(async () => {
  up = await startZdrUpstreams();
});
afterAll(() => up[Symbol.asyncDispose]());
beforeEach(() => {
  up.keeps.reset();
  up.clean.reset();
});

const LEVELS = ["off", "required", "strict"] as const;
type Level = (typeof LEVELS)[number];
/** Meaning of each header. null: it is invalid. */
const VALUES: readonly (readonly [lines: readonly string[], means: Level | null | undefined])[] = [
  [[], undefined],
  [["required"], "required"],
  [["true"], "required"],
  [["1"], "required"],
  [["Required"], "required"],
  [[" REQUIRED "], "required"],
  [["strict"], "strict"],
  [["STRICT"], "strict"],
  [["off"], "off"],
  [["false"], "off"],
  [["0"], "off"],
  [["required", "required"], "required"],
  [["required", "true"], "required"],
  [["strict", "strict"], "strict"],
  [["required, 1"], "required"],
  [["required", "strict"], null],
  [["required", "off"], null],
  [["required, off"], null],
  [["required,"], null],
  [[""], null],
  [["yes"], null],
  [["none"], null],
  [["2"], null],
  [["required;strict"], null],
  [["__proto__"], null],
  [["constructor"], null],
];

describe.each(LEVELS)("with the default %s", (byConfig) => {
  let gateway: InProcessGateway;
  const keys = new Map<Level, string>();
  beforeAll(async () => {
    gateway = await startInProcess({
      yaml:
        CHAIN(byConfig === "off" ? "zdr" : `{ use: zdr, with: { default: ${byConfig} } }`) +
        providersOf(up),
    });
    for (const privacy of LEVELS) {
      const made = (await gateway.ask("keys.create", { name: privacy, privacy })) as any;
      keys.set(privacy, made.secret);
    }
  });
  afterAll(() => gateway[Symbol.asyncDispose]());

  const table = LEVELS.flatMap((byKey) =>
    VALUES.map(([lines, means]) => [byKey, JSON.stringify(lines), lines, means] as const),
  );
  it.each(table)("a key of %s that sends %s", async (byKey, _name, zdr, means) => {
    const rank = (level: Level) => LEVELS.indexOf(level);
    const least = rank(byKey) > rank(byConfig) ? byKey : byConfig;
    const key = keys.get(byKey)!;
    const [clean, memory, keeps] = await Promise.all(
      ["clean-chat", "memory-chat", "keeps-chat"].map((provider) =>
        ask(gateway, "chat", say("chat", `${provider}/model`), { zdr, key }),
      ),
    );
    const all = [clean!, memory!, keeps!];
    for (const { headers } of all) expect(headers["service-zdr-policy"]).toBeDefined();
    if (means === null) {
      expect(all.map(codeOf)).toEqual(Array(3).fill("invalid_service_zdr"));
      expect(all.map(({ status }) => status)).toEqual([400, 400, 400]);
      expect(heard(up.keeps).length + heard(up.clean).length).toBe(0);
      return;
    }
    if (means !== undefined && rank(means) < rank(least)) {
      expect(all.map(codeOf)).toEqual(Array(3).fill("zdr_downgrade_forbidden"));
      expect(all.map(({ status }) => status)).toEqual([403, 403, 403]);
      expect(heard(up.keeps).length + heard(up.clean).length).toBe(0);
      return;
    }
    const level = means ?? least;
    expect(all.map(({ status }) => status)).toEqual(
      { off: [200, 200, 200], required: [200, 200, 403], strict: [200, 403, 403] }[level],
    );
    for (const { headers } of all)
      expect(headers["service-zdr"]).toBe(level === "off" ? "not-requested" : "enforced");
    expect(clean!.headers["service-zdr-policy"]).toBe(
      "clean-chat/chat-completions;retention=zero;basis=declared;verified=unknown",
    );
    expect(heard(up.keeps)).toHaveLength(level === "off" ? 1 : 0);
  });
});

/** Fields with tools. */
const TOOLS: readonly string[] = ["tools", "mcp_servers"];

describe("under Service-ZDR", () => {
  let gateway: InProcessGateway;
  const zdr = ["required"];
  beforeAll(async () => {
    gateway = await startInProcess({ yaml: CHAIN("zdr") + providersOf(up) });
  });
  afterAll(() => gateway[Symbol.asyncDispose]());
  const nobodyHeard = () => {
    expect(up.keeps.requests.filter(({ method }) => method !== "GET")).toEqual([]);
    expect(heard(up.clean)).toEqual([]);
  };

  it.each(["chat", "messages", "responses", "images"] as const)(
    "a rejection in the format of %s lists the candidates, the reasons, and the models that qualify",
    async (door) => {
      const name = door === "images" ? "draw" : "model";
      const got = await ask(gateway, door, say(door, `keeps-${door}/${name}`), { zdr });
      expect(got.status).toBe(403);
      expect(codeOf(got)).toBe("zdr_unavailable");
      expect(paramOf(got)).toBe("Service-ZDR");
      expect(got.body.error.type).toBe("permission_error");
      if (door === "messages") expect(got.body.type).toBe("error");
      const { requested, considered, alternatives } = detailsOf(got);
      expect(requested).toBe("required");
      expect(considered[0]).toMatchObject({
        model: `keeps-${door}/${name}`,
        credential: "main",
        code: "zdr_unavailable",
        retention: "unknown",
      });
      expect(considered[0].because).toContain("retention_unknown");
      expect(alternatives.length).toBeGreaterThan(0);
      for (const other of alternatives) {
        const again = await ask(gateway, door, say(door, other), { zdr });
        // It fails for every request, by design.
        if (other !== "demo/fail") expect(again.status, other).toBe(200);
      }
      expect(got.headers).toMatchObject({
        "service-zdr": "enforced",
        "service-zdr-policy": "none",
        "x-should-retry": "false",
      });
      expect(heard(up.keeps)).toEqual([]);
    },
  );

  it("names only models that the key may use", async () => {
    const models = ["keeps-chat/*", "clean-messages/*"];
    const { secret } = (await gateway.ask("keys.create", { name: "few", models })) as any;
    const got = await ask(gateway, "chat", say("chat", "keeps-chat/model"), { zdr, key: secret });
    expect(got.status).toBe(403);
    for (const other of detailsOf(got).alternatives) expect(other).toMatch(/^clean-messages\//);
    expect(JSON.stringify(got.body)).not.toContain("clean-chat");
  });

  it.each([
    ["chat", { store: true }, "store"],
    ["chat", { deferred: true }, "deferred"],
    ["chat", { conversation: "conv_1" }, "conversation"],
    ["chat", { previous_response_id: "resp_1" }, "previous_response_id"],
    ["chat", { prompt_cache_retention: "24h" }, "prompt_cache_retention"],
    ["chat", { cachedContent: "cachedContents/1" }, "cachedContent"],
    ["responses", { store: true }, "store"],
    ["responses", { background: true }, "background"],
    ["responses", { conversation: "conv_1" }, "conversation"],
    ["responses", { previous_response_id: "resp_1" }, "previous_response_id"],
    ["responses", { prompt: { id: "pmpt_1" } }, "prompt"],
    ["responses", { tools: [{ type: "file_search", vector_store_ids: ["vs_1"] }] }, "tools"],
    ["responses", { tools: [{ type: "code_interpreter", container: { type: "auto" } }] }, "tools"],
    ["messages", { container: "container_1" }, "container"],
    ["messages", { tools: [{ type: "code_execution_20250825", name: "code_execution" }] }, "tools"],
    [
      "messages",
      { mcp_servers: [{ type: "url", url: "https://x.example", name: "x" }] },
      "mcp_servers",
    ],
    ["images", { response_format: "url" }, "response_format"],
  ] as const)("%s with %j is a conflict, in both modes", async (door, more, param) => {
    const others = door === "images" ? ["images"] : (["chat", "messages", "responses"] as const);
    for (const to of others) {
      const model = `clean-${to}/${to === "images" ? "draw" : "model"}`;
      const got = await ask(gateway, door, say(door, model, more), { zdr });
      // A provider that does not run the tool stores nothing of it, and cannot be requested to.
      const code = codeOf(got) === "unsupported_tool" ? "unsupported_tool" : "zdr_feature_conflict";
      expect(
        [got.status, codeOf(got), paramOf(got)],
        `${model} ${JSON.stringify(got.body)}`,
      ).toEqual([
        400,
        to === door || !TOOLS.includes(param) ? "zdr_feature_conflict" : code,
        param,
      ]);
    }
    nobodyHeard();
  });

  it("reads and cancels no stored objects", async () => {
    for (const [method, path] of [
      ["GET", "/v1/responses/resp_1"],
      ["DELETE", "/v1/responses/resp_1"],
      ["GET", "/v1/responses/resp_1/input_items"],
    ] as const) {
      const got = await ask(gateway, "responses", {}, { zdr, method, path });
      expect([got.status, codeOf(got)]).toEqual([400, "zdr_feature_conflict"]);
    }
    nobodyHeard();
  });

  it.each(["chat", "messages", "responses"] as const)(
    "a request in %s that is sent as responses has store: false",
    async (door) => {
      const got = await ask(gateway, door, say(door, "clean-responses/model"), { zdr });
      expect(got.status).toBe(200);
      expect(heard(up.clean).map((asked) => asked.json()["store"])).toEqual([false]);
      expect(got.headers["service-zdr-policy"]).toBe(
        "clean-responses/responses;retention=zero;basis=declared;verified=2026-11-20",
      );
    },
  );

  it("a prompt cache is accepted for required, and a conflict for strict", async () => {
    const body = say("messages", "clean-messages/model", {
      system: [{ type: "text", text: "Be kind.", cache_control: { type: "ephemeral" } }],
    });
    expect((await ask(gateway, "messages", body, { zdr })).status).toBe(200);
    const strict = await ask(gateway, "messages", body, { zdr: ["strict"] });
    expect([strict.status, codeOf(strict), paramOf(strict)]).toEqual([
      400,
      "zdr_feature_conflict",
      "cache_control",
    ]);
  });

  it("the end user is separated by an ID, and not disclosed", async () => {
    await ask(gateway, "chat", say("chat", "clean-chat/model", { user: "ada@example.com" }), {
      zdr,
    });
    await ask(gateway, "chat", say("chat", "clean-chat/model", { user: "ada@example.com" }));
    const [hidden, plain] = heard(up.clean).map((asked) => asked.json()["user"]);
    expect(hidden).toMatch(/^[0-9a-f]{32}$/);
    expect(plain).toBe("ada@example.com");
  });

  it("a token count is requested only from providers that do not store it", async () => {
    const path = "/v1/messages/count_tokens";
    const body = { model: "keeps-messages/model", messages: [{ role: "user", content: "x" }] };
    const refused = await ask(gateway, "messages", body, { zdr, path });
    expect([refused.status, codeOf(refused)]).toEqual([403, "zdr_unavailable"]);
    nobodyHeard();
  });

  it("a response without attestation is an error, and its credential is not used again", async () => {
    const body = (more = "") => ({
      ...say("chat", "attests-chat/model"),
      messages: [{ role: "user", content: `x ${more}` }],
    });
    const fine = await ask(gateway, "chat", body(), { zdr });
    expect(fine.status, JSON.stringify(fine.body)).toBe(200);
    const lied = await ask(gateway, "chat", body("lie=1"), { zdr });
    expect([lied.status, codeOf(lied)]).toEqual([502, "zdr_attestation_failed"]);
    expect(JSON.stringify(lied.body)).not.toContain("Hello from");
    up.clean.reset();
    const again = await ask(gateway, "chat", body(), { zdr });
    expect([again.status, codeOf(again)]).toEqual([403, "zdr_unavailable"]);
    expect(heard(up.clean)).toEqual([]);
    const status = (await gateway.ask("status")) as any;
    expect(JSON.stringify(status)).toContain("attests-chat");
    // A client that requests no privacy is served as before.
    expect((await ask(gateway, "chat", body())).status).toBe(200);
  });

  it("lists only the models that qualify", async () => {
    const list = async (query: string, more: object = {}) => {
      const { body } = await ask(
        gateway,
        "chat",
        {},
        { method: "GET", path: `/v1/models${query}`, ...more },
      );
      return body.data.map((model: { id: string }) => model.id) as string[];
    };
    const required = await list("?zdr=required");
    expect(required.some((id) => id.startsWith("clean-"))).toBe(true);
    expect(required.some((id) => /^(keeps|lapsed)-/.test(id))).toBe(false);
    expect(required).toEqual(await list("", { zdr }));
    expect((await list("")).some((id) => id.startsWith("keeps-"))).toBe(true);
    const bad = await ask(gateway, "chat", {}, { method: "GET", path: "/v1/models?zdr=perhaps" });
    expect(bad.status).toBe(400);
  });

  it("every error has both receipts, at any depth", async () => {
    const all = [
      await ask(gateway, "chat", say("chat", "clean-chat/model"), { key: "tg_nobody", zdr }),
      await ask(gateway, "chat", {}, { zdr }),
      await ask(gateway, "chat", say("chat", "nobody/model"), { zdr }),
      await ask(gateway, "chat", {}, { zdr, path: "/v1/nothing" }),
      await ask(gateway, "chat", say("chat", "clean-chat/model", { stop: "fail=clean" }), { zdr }),
    ];
    expect(all.map(({ status }) => status)).toEqual([401, 400, 404, 404, 503]);
    for (const { headers } of all) expect(headers["service-zdr"]).toBe("enforced");
    expect(all.map(({ headers }) => headers["service-zdr-policy"])).toEqual([
      ...Array(4).fill("none"),
      "clean-chat/chat-completions;retention=zero;basis=declared;verified=unknown",
    ]);
  });

  it("the ledger row has the same information", async () => {
    const got = await ask(gateway, "chat", say("chat", "clean-responses/model"), {
      zdr: ["strict"],
    });
    const { items } = (await gateway.ask("ledger.entries", { limit: 1000 })) as any;
    const mine = items.filter((row: any) => row.request === got.headers["x-request-id"]);
    expect(mine.map((row: any) => [row.kind, row.privacy])).toEqual([
      ["reserve", "strict"],
      ["settle", "strict"],
    ]);
    const { provider, protocol } = mine[0].target;
    expect(`${provider}/${protocol};${mine[0].clientRequest.policyBasis}`).toBe(
      got.headers["service-zdr-policy"],
    );
  });
});

describe("a middleware that sends content", () => {
  const sender = (sends: string) => `
import { defineMiddleware } from "tollgate/plugin";
export default defineMiddleware({ api: 1, name: "sender", summary: "Looks elsewhere", sends: ${sends}, setup: () => ({ rewrite: (r) => r }) });
`;
  const zero = (more: string) =>
    `{ retention: { kind: "zero" }, trains: "no", evidence: ["https://example.com/policy"], verifiedAt: "2026-11-01" ${more} }`;
  it.each([
    ["somewhere unknown", `{ retention: { kind: "unknown" }, trains: "unknown" }`, "", 403],
    [
      "somewhere that keeps",
      `{ retention: { kind: "days", days: 1 }, trains: "no" }`,
      ", trust_policy: true",
      403,
    ],
    ["somewhere that it says keeps nothing", zero(""), "", 403],
    ["somewhere that the operator trusts to keep nothing", zero(""), ", trust_policy: true", 200],
    [
      "somewhere whose promise has ended",
      zero(`, expires: "2026-01-01"`),
      ", trust_policy: true",
      403,
    ],
    ["nowhere", `"nowhere"`, "", 200],
  ])("%s", async (_name, sends, more, status) => {
    await using gateway = await startInProcess({
      files: { "sender.ts": sender(sends) },
      yaml: `frontends: [chat-completions]\nmiddleware: [auth, zdr, { use: ./sender.ts${more} }]\nstore: memory\n${providersOf(up)}`,
    });
    const body = say("chat", "clean-chat/model");
    const got = await ask(gateway, "chat", body, { zdr: ["required"] });
    expect(got.status, JSON.stringify(got.body)).toBe(status);
    if (status === 403)
      expect(detailsOf(got).considered[0]).toMatchObject({ reason: "route_plugin" });
    expect((await ask(gateway, "chat", body)).status).toBe(200);
    expect(heard(up.clean)).toHaveLength(status === 200 ? 2 : 1);
  });
});
