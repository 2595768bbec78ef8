// Outgoing requests: nothing is stored unless requested, and nothing is found by an ID alone.
import { describe, expect, it } from "vitest";
import type { CallContext, Body } from "tollgate/plugin";
import { responses } from "tollgate/protocols/responses";
import { createResponseContext, createCallContext, encodeText } from "tollgate/testing";
import { OutgoingRequest } from "../../../src/pipeline/upstream/outgoing-request.ts";
import { faultFrom } from "./kit.ts";

const client = responses().client!;

/** The body after the codec's last step. */
function leaving(body: Body, of: Partial<CallContext> = {}, codec = client): any {
  const out = new OutgoingRequest({ method: "POST", path: "/responses", body });
  codec.prepare!(out, createCallContext(of));
  return JSON.parse(out.toChunks()!.toBuffer().toString());
}
const hi: Body = { model: "m", input: "Hi" };
const relay = { stateMode: "relay" } as const;
const reasons = { info: { model: "m", operation: "chat", can: { reasoning: true } } } as const;

describe("stored state", () => {
  it("is disabled, unless the client requested it or the operator relays it", () => {
    expect(leaving(hi).store).toBe(false);
    expect(leaving({ ...hi, store: null }).store).toBe(false);
    expect(leaving({ ...hi, store: true }).store).toBe(true);
    expect(leaving({ ...hi, store: false }).store).toBe(false);
    expect(leaving(hi, relay)).not.toHaveProperty("store");
    expect(leaving(hi, { actionType: "count" })).not.toHaveProperty("store");
    expect(
      leaving({ ...hi, store: true }, {}, responses({ store: false }).client!),
    ).not.toHaveProperty("store");
  });

  it("is replaced by encrypted reasoning", () => {
    expect(leaving(hi, reasons).include).toEqual(["reasoning.encrypted_content"]);
    expect(leaving({ ...hi, reasoning: { effort: "low" }, include: ["x"] }).include).toEqual([
      "x",
      "reasoning.encrypted_content",
    ]);
    expect(leaving(hi)).not.toHaveProperty("include");
    expect(leaving({ ...hi, store: true }, reasons)).not.toHaveProperty("include");
  });

  it("omits fields that an upstream does not support, with a warning", () => {
    const of = createCallContext();
    const out = new OutgoingRequest({ method: "POST", path: "/", body: { ...hi, metadata: {} } });
    responses({ dropFields: ["metadata", "user"] }).client!.prepare!(out, of);
    expect(out.get("metadata")).toBeUndefined();
    expect(of.losses.map((l) => l.field)).toEqual(["metadata"]);
  });

  it("has a limited length under a budget", () => {
    const bounded = (body: Body) => {
      const out = new OutgoingRequest({ method: "POST", path: "/", body });
      client.capOutput!(out, 100);
      return out.get("max_output_tokens");
    };
    expect(bounded(hi)).toBe(100);
    expect(bounded({ ...hi, max_output_tokens: 50 })).toBe(50);
    expect(bounded({ ...hi, max_output_tokens: 500 })).toBe(100);
  });
});

const stateful: Record<string, Body> = {
  previous_response_id: { previous_response_id: "resp_1" },
  conversation: { conversation: { id: "conv_1" } },
  background: { background: true },
  prompt: { prompt: { id: "pmpt_1" } },
  "prompt_cache_options.comparison_response_id": {
    prompt_cache_options: { comparison_response_id: "resp_1" },
  },
  "input[0].content[0].file_id": {
    input: [{ role: "user", content: [{ type: "input_file", file_id: "file_1" }] }],
  },
  "input[0].output[0].file_id": {
    input: [
      {
        type: "function_call_output",
        call_id: "c",
        output: [{ type: "input_image", file_id: "f" }],
      },
    ],
  },
  "input[0].output.file_id": {
    input: [
      {
        type: "computer_call_output",
        call_id: "c",
        output: { type: "computer_screenshot", file_id: "f" },
      },
    ],
  },
  "tools[0].vector_store_ids": { tools: [{ type: "file_search", vector_store_ids: ["vs_1"] }] },
  "tools[0].container": { tools: [{ type: "code_interpreter", container: "cntr_1" }] },
  "tools[0].container.file_ids": {
    tools: [{ type: "code_interpreter", container: { type: "auto", file_ids: ["f"] } }],
  },
  "tools[0].environment.container_id": {
    tools: [{ type: "shell", environment: { type: "container_reference", container_id: "c" } }],
  },
  "tools[0].input_image_mask.file_id": {
    tools: [{ type: "image_generation", input_image_mask: { file_id: "f" } }],
  },
};

describe.each(Object.entries(stateful))("%s", (param, field) => {
  const body = { ...hi, ...field };

  it("is never sent to an upstream with a shared key", () => {
    const fault = faultFrom(() => leaving(body));
    expect(fault).toMatchObject({
      kind: "unsupported",
      param,
      code:
        param === "previous_response_id" ? "previous_response_not_found" : "unsupported_parameter",
    });
  });

  it("is sent to an upstream whose operator relays it", () =>
    expect(() => leaving(body, relay)).not.toThrow());
});

describe("an ID in the input", () => {
  it("of a referenced item is rejected", () => {
    for (const item of [{ type: "item_reference", id: "msg_1" }, { id: "msg_1" }])
      for (const state of ["reject", "relay"] as const)
        expect(
          faultFrom(() => leaving({ ...hi, input: [item] }, { stateMode: state })),
        ).toMatchObject({
          kind: "invalid",
          code: "item_not_found",
          message: expect.stringContaining("store: false"),
        });
  });

  const thought = { type: "reasoning", id: "rs_1", summary: [] };
  const call = { type: "function_call", id: "fc_1", call_id: "c", name: "f", arguments: "{}" };

  it("of reasoning without its encrypted content is removed, together with dependent items", () => {
    expect(leaving({ ...hi, input: [thought, call] }).input).toEqual([
      { type: "function_call", call_id: "c", name: "f", arguments: "{}" },
    ]);
    expect(leaving({ ...hi, input: [thought, call] }, relay).input).toEqual([thought, call]);
    const whole = [{ ...thought, encrypted_content: "e" }, call];
    expect(leaving({ ...hi, input: whole }).input).toEqual(whole);
  });

  it("of an image without its bytes is removed", () =>
    expect(
      leaving({
        ...hi,
        input: [
          { type: "image_generation_call", id: "ig_1" },
          { role: "user", content: "x" },
        ],
      }).input,
    ).toEqual([{ role: "user", content: "x" }]));
});

describe("proofs of other providers", () => {
  const answered = (origin: string) => {
    const events = [
      { type: "start" },
      { type: "open", index: 0, block: { type: "reasoning" } },
      { type: "delta", index: 0, text: "Hm" },
      { type: "proof", index: 0, proof: { origin, kind: "k", data: "secret" } },
      { type: "close", index: 0 },
      { type: "finish", reason: "stop" },
    ] as const;
    const text = encodeText(responses().server!, events, createResponseContext({ stream: true }));
    const last = text.split("\n").findLast((line) => line.startsWith("data: {"))!;
    return JSON.parse(last.slice(6)).response.output;
  };

  it("are not sent to this protocol's upstreams", () => {
    const input = [...answered("messages"), { role: "user", content: "x" }];
    expect(leaving({ ...hi, input }).input).toEqual([{ role: "user", content: "x" }]);
    expect(leaving({ ...hi, input }, relay).input).toEqual([{ role: "user", content: "x" }]);
  });

  it("do not include the upstream's own", () => {
    const input = answered("responses");
    expect(input[0].encrypted_content).toBe("secret");
    expect(leaving({ ...hi, input }).input).toEqual(input);
  });
});

describe("a stored response", () => {
  const of = (state?: "relay") =>
    createCallContext({
      actionType: "relay",
      action: "retrieve",
      params: { id: "resp_1/../x" },
      ...(state && { stateMode: state }),
    });
  const out = () => new OutgoingRequest({ method: "GET", path: "/", body: null });

  it("is not found, unless the operator relays state", () => {
    expect(faultFrom(() => client.prepare!(out(), of()))).toMatchObject({
      kind: "not_found",
      message: "Response with id 'resp_1/../x' not found.",
    });
    expect(() => client.prepare!(out(), of("relay"))).not.toThrow();
  });

  it("is requested below the base URL, whatever the ID is", () => {
    const path = client.paths["retrieve"];
    expect((path as (of: CallContext) => string)(of("relay"))).toBe("/responses/resp_1%2F..%2Fx");
  });
});
