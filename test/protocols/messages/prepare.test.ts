// The last step before a request is sent, in both modes: stored state, envelopes, dialects, limits.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { getFault } from "../../../src/model/error.ts";
import type { Proof } from "../../../src/model/request.ts";
import type { Outgoing } from "../../../src/plugin/outgoing.ts";
import { seal } from "../../../src/protocols/proof-envelope.ts";
import {
  filterBetas,
  messages,
  type MessagesDialect,
} from "../../../src/protocols/messages/index.ts";
import { createCallContext } from "../../../src/testing/codec-contexts.ts";
import { deepFreeze } from "../../../src/testing/freeze.ts";

type Fields = Record<string, unknown>;

function leaving(body: Fields, headers: Record<string, string> = {}) {
  const edits: Fields = {};
  const out: Outgoing = {
    method: "POST",
    path: "/messages",
    headers,
    get: (f) => (f in edits ? edits[f] : body[f]) as never,
    set: (f, v) => void (edits[f] = v),
    remove: (f) => void (edits[f] = undefined),
    setHeader: (name, value) =>
      value === undefined ? void delete headers[name] : void (headers[name] = value),
  };
  return { out, edits, headers };
}

const prepared = (
  body: Fields,
  dialect: MessagesDialect = {},
  of: Parameters<typeof createCallContext>[0] = {},
  headers: Record<string, string> = {},
) => {
  const asked = createCallContext(of);
  const left = leaving(deepFreeze(body), headers);
  messages(dialect).client!.prepare!(left.out, asked);
  return { ...left, losses: asked.losses };
};

const user = { role: "user", content: "x" };
const native = { type: "thinking", thinking: "T", signature: "native" };
const text = { type: "text", text: "x" };

test("a request without changes is not edited", () => {
  const body = {
    model: "m",
    max_tokens: 1,
    messages: [user, { role: "assistant", content: [native, text] }, user],
    brand_new: 1,
  };
  expect(prepared(body)).toMatchObject({ edits: {}, losses: [] });
});

describe("state", () => {
  const file = { type: "file", file_id: "file_1" };
  test.each<[string, Fields, string]>([
    ["a thread", { thread: { type: "create" } }, "thread"],
    ["a container", { container: "c1" }, "container"],
    ["a container by object", { container: { id: "c1" } }, "container"],
    [
      "a file",
      { messages: [{ role: "user", content: [{ type: "image", source: file }] }] },
      "messages",
    ],
    [
      "a file in a result",
      {
        messages: [
          {
            role: "user",
            content: [{ type: "tool_result", content: [{ type: "document", source: file }] }],
          },
        ],
      },
      "messages",
    ],
    [
      "a file inside of a document",
      {
        messages: [
          {
            role: "user",
            content: [
              {
                type: "document",
                source: { type: "content", content: [{ type: "image", source: file }] },
              },
            ],
          },
        ],
      },
      "messages",
    ],
    [
      "an upload",
      { messages: [{ role: "user", content: [{ type: "container_upload", file_id: "f" }] }] },
      "messages",
    ],
  ])("%s is rejected, unless the operator relays it", (_what, body, param) => {
    try {
      prepared(body);
      expect.unreachable();
    } catch (error) {
      expect(getFault(error)).toMatchObject({ kind: "unsupported", param });
    }
    expect(prepared(body, {}, { stateMode: "relay" }).edits).toEqual({});
  });

  test("a new container is not stored state", () => {
    expect(prepared({ container: { skills: [] } }).edits).toEqual({});
  });
});

describe("envelopes that a client brings to passthrough mode", () => {
  const sealed = (proof: Proof | undefined) => ({
    type: "thinking",
    thinking: "T",
    signature: seal({ proof }),
  });
  const conversation = (...content: object[]) => ({
    messages: [user, { role: "assistant", content }, user],
  });
  const kept = (content: object[], dialect: MessagesDialect = {}) =>
    (prepared(conversation(...content), dialect).edits["messages"] as any)?.[1]?.content;

  test("of other providers are omitted, because their signature would be invalid", () => {
    const foreign = sealed({ origin: "responses", kind: "encrypted", data: "E" });
    expect(kept([foreign, text])).toEqual([text]);
    expect(kept([sealed(undefined), text])).toEqual([text]);
  });

  test("of the same provider are opened", () => {
    const own = sealed({ origin: "moonshot", kind: "signature", data: "S" });
    const hidden = {
      type: "redacted_thinking",
      data: seal({ proof: { origin: "moonshot", kind: "redacted", data: "R" } }),
    };
    expect(kept([own, hidden, text], { signer: "moonshot" })).toEqual([
      { type: "thinking", thinking: "T", signature: "S" },
      { type: "redacted_thinking", data: "R" },
      text,
    ]);
  });

  test("without a provider are sent to backends that do not sign", () => {
    expect(kept([sealed(undefined), text], { acceptsUnsignedThinking: true })).toEqual([
      { type: "thinking", thinking: "T", signature: "" },
      text,
    ]);
  });

  test("with another block's proof are omitted, and so is a message that consists of them", () => {
    const proof = { origin: "gemini", kind: "thoughtSignature", data: "G" };
    const carried = { type: "redacted_thinking", data: seal({ proof, precedingBlock: "call" }) };
    expect(prepared(conversation(carried)).edits["messages"]).toEqual([user, user]);
  });

  test("native signatures are not changed", () => {
    expect(prepared(conversation(native, text)).edits).toEqual({});
  });
});

describe("dialects", () => {
  test("beta features are sent to backends that support them", () => {
    const beta = { "anthropic-beta": "x-2026-01-01" };
    expect(prepared({}, {}, {}, { ...beta }).headers).toEqual(beta);
    expect(prepared({}, { betas: false }, {}, { ...beta }).headers).toEqual({});
    const path = (dialect: MessagesDialect, query: string) => {
      const { generate } = messages(dialect).client!.paths;
      return (generate as (of: object) => string)(
        createCallContext({ query: new URLSearchParams(query) }),
      );
    };
    expect(path({}, "beta=true&x=1")).toBe("/messages?beta=true");
    expect(path({}, "")).toBe("/messages");
    expect(path({ betas: false }, "beta=true")).toBe("/messages");
  });

  test("unsupported fields are dropped and reported", () => {
    const { edits, losses } = prepared(
      { metadata: { user_id: "u" } },
      { dropFields: ["metadata", "speed"] },
    );
    expect(edits).toEqual({ metadata: undefined });
    expect(losses.map((l) => l.field)).toEqual(["metadata"]);
  });

  test("a client's telemetry for Anthropic is sent to Anthropic only", () => {
    const note = { type: "text", text: "x-anthropic-billing-header: cc_version=2;" };
    expect(prepared({ system: [note, text] }).edits).toEqual({});
    expect(prepared({ system: [note, text] }, { signer: "x" }).edits).toEqual({ system: [text] });
    expect(prepared({ system: [note] }, { signer: "x" }).edits).toEqual({ system: undefined });
  });

  test("a backend without token counts has none", () => {
    const { client } = messages({ countsTokens: false });
    expect(client!.paths["count"]).toBeUndefined();
    expect(client!.decodeCount).toBeUndefined();
  });
});

test("a token count omits fields that are not counted", () => {
  const body = { model: "m", max_tokens: 5, stream: true, messages: [user], brand_new: 1 };
  expect(prepared(body, {}, { actionType: "count" }).edits).toEqual({
    max_tokens: undefined,
    stream: undefined,
  });
});

describe("a beta and its part of the body", () => {
  const mark = { type: "ephemeral", ttl: "1h", scope: "global" };
  /** A body with every part that belongs to a beta. */
  const BODY: Fields = {
    context_management: { edits: [] },
    compaction: {},
    output_format: { type: "json_schema", schema: {} },
    output_config: { effort: "high", format: {}, task_budget: { type: "tokens", total: 1 } },
    tools: [
      {
        name: "a",
        input_schema: {},
        strict: true,
        defer_loading: true,
        allowed_callers: ["direct"],
        input_examples: [],
        eager_input_streaming: true,
        cache_control: mark,
      },
      { type: "tool_search_tool_regex_20251119", name: "s" },
      { type: "advisor_20260301", name: "advisor" },
      { type: "mcp_toolset", mcp_server_name: "m" },
    ],
    system: [{ type: "text", text: "x", cache_control: mark }],
    messages: [
      user,
      {
        role: "user",
        content: [
          {
            type: "tool_result",
            tool_use_id: "t",
            content: [{ type: "tool_reference", tool_name: "a" }],
          },
        ],
      },
    ],
    mcp_servers: [],
    speed: "fast",
    fallbacks: [],
    fallback_credit_token: "f",
    user_profile_id: "u",
    diagnostics: {},
    safeguards: {},
    brand_new: 1,
  };
  const BETAS: readonly (readonly [beta: string, ...lost: string[]])[] = [
    ["context-management-2025-06-27", "context_management"],
    ["compact-2026-01-12", "context_management", "compaction"],
    ["structured-outputs-2025-11-13", "output_format", "output_config.format", "tools.strict"],
    ["effort-2025-11-24", "output_config.effort"],
    ["task-budgets-2026-03-13", "output_config.task_budget"],
    [
      "advanced-tool-use-2025-11-20",
      "tools.defer_loading",
      "tools.allowed_callers",
      "tools.input_examples",
      "tools.tool_search_tool_regex_20251119",
      "content.tool_reference",
    ],
    ["fine-grained-tool-streaming-2025-05-14", "tools.eager_input_streaming"],
    ["advisor-tool-2026-03-01", "tools.advisor_20260301"],
    ["mcp-client-2025-11-20", "mcp_servers", "tools.mcp_toolset"],
    ["extended-cache-ttl-2025-04-11", "cache_control.ttl"],
    ["prompt-caching-scope-2026-01-05", "cache_control.scope"],
    ["fast-mode-2026-02-01", "speed"],
    ["server-side-fallback-2026-07-01", "fallbacks"],
    ["fallback-credit-2026-07-01", "fallback_credit_token"],
    ["user-profiles-2026-08-18", "user_profile_id"],
    ["cache-diagnosis-2026-04-07", "diagnostics"],
    ["unheard-of-2027-01-01", "safeguards"],
    ["interleaved-thinking-2025-05-14"],
    ["claude-code-20250219"],
  ];
  /** Returns the body as it is sent, and the parts that it lost. */
  const filtered = (betas: readonly string[], allowed: (beta: string) => boolean) => {
    const { out, edits, headers } = leaving(deepFreeze(BODY), {
      "anthropic-beta": betas.join(", "),
    });
    const of = createCallContext();
    filterBetas(out, of, allowed);
    const lost = of.losses.map(({ field }) => field).toSorted();
    return { body: { ...BODY, ...edits }, header: headers["anthropic-beta"], lost };
  };
  /** All names of members and types in a value. */
  const namesIn = (value: unknown): string[] =>
    typeof value !== "object" || value === null
      ? []
      : Object.entries(value).flatMap(([name, inner]) =>
          inner === undefined ? [] : [name, ...(name === "type" ? [inner] : []), ...namesIn(inner)],
        );

  test.each(BETAS)("%s", (beta, ...lost) => {
    expect(filtered([beta], () => true)).toEqual({ body: BODY, header: beta, lost: [] });
    expect(filtered([], () => false)).toEqual({ body: BODY, header: "", lost: [] });
    const { body, header, lost: reported } = filtered([beta], () => false);
    expect(header).toBeUndefined();
    expect(reported).toEqual(lost.toSorted());
    expect(body["brand_new"]).toBe(1);
    const left = new Set(namesIn(body));
    for (const part of lost) expect(left).not.toContain(part.split(".").at(-1));
    // All other parts are sent.
    for (const [, ...parts] of BETAS)
      for (const part of parts)
        if (!lost.includes(part)) expect(left).toContain(part.split(".").at(-1));
  });

  test("any set of betas leaves no half", () => {
    fc.assert(
      fc.property(
        fc.subarray(BETAS.map(([beta]) => beta)),
        fc.subarray(BETAS.map(([beta]) => beta)),
        (asked, allowed) => {
          const { header, lost } = filtered(asked, (beta) => allowed.includes(beta));
          const kept = asked.filter((beta) => allowed.includes(beta));
          expect(header ?? "").toBe(kept.length < asked.length ? kept.join(",") : asked.join(", "));
          const needed = (betas: readonly string[]) =>
            BETAS.flatMap(([beta, ...parts]) => (betas.includes(beta) ? parts : []));
          const gone = asked.filter((beta) => !allowed.includes(beta));
          expect(lost).toEqual(
            [...new Set(needed(gone))].filter((part) => !needed(kept).includes(part)).toSorted(),
          );
        },
      ),
      { numRuns: 200 },
    );
  });

  test("is lost if the backend has no betas, and the beta if the backend drops its field", () => {
    const headers = { "anthropic-beta": "context-management-2025-06-27" };
    const fields = { context_management: {} };
    const { edits, losses, headers: sent } = prepared(fields, { betas: false }, {}, { ...headers });
    expect(edits).toEqual({ context_management: undefined });
    expect(losses).toMatchObject([{ field: "context_management", code: "beta_not_allowed" }]);
    expect(sent).toEqual({});
    const dropped = prepared(
      fields,
      { dropFields: ["context_management"] },
      {},
      { "anthropic-beta": "effort-2025-11-24,context-management-2025-06-27" },
    );
    expect(dropped.headers).toEqual({ "anthropic-beta": "effort-2025-11-24" });
  });
});

describe("an output limit", () => {
  const capped = (body: Fields, tokens: number) => {
    const { out, edits } = leaving(body);
    messages().client!.capOutput!(out, tokens);
    return edits;
  };

  test("is set, or lowered, and never raised", () => {
    expect(capped({}, 100)).toEqual({ max_tokens: 100 });
    expect(capped({ max_tokens: 900 }, 100)).toEqual({ max_tokens: 100 });
    expect(capped({ max_tokens: 50 }, 100)).toEqual({});
  });

  test("includes reasoning", () => {
    const thinking = { type: "enabled", budget_tokens: 5000 };
    expect(capped({ max_tokens: 9000, thinking }, 6000)).toEqual({ max_tokens: 6000 });
    expect(capped({ max_tokens: 9000, thinking }, 3000)).toEqual({
      max_tokens: 3000,
      thinking: { ...thinking, budget_tokens: 1024 },
    });
    expect(capped({ max_tokens: 9000, thinking }, 800)).toEqual({
      max_tokens: 800,
      thinking: { type: "disabled" },
    });
  });
});
