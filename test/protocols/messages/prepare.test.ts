// The last step before a request is sent, in both modes: stored state, envelopes, dialects, limits.
import { describe, expect, test } from "vitest";
import { getFault } from "../../../src/model/error.ts";
import type { Proof } from "../../../src/model/request.ts";
import type { Outgoing } from "../../../src/plugin/outgoing.ts";
import { seal } from "../../../src/protocols/proof-envelope.ts";
import { messages, type MessagesDialect } from "../../../src/protocols/messages/index.ts";
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
