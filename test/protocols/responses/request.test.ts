// Requests: from a client, decoded like the service does, and encoded again.
import { readFileSync } from "node:fs";
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Body, ChatRequest, JsonObject } from "tollgate/plugin";
import { chatCompletions } from "tollgate/protocols/chat-completions";
import { messages } from "tollgate/protocols/messages";
import { responses } from "tollgate/protocols/responses";
import { createCallContext, deepFreeze, withoutUndefined } from "tollgate/testing";
import { faultFrom } from "./kit.ts";
import { createChatRequest } from "../../kit/requests.ts";
import { trialCount } from "../../kit/law-effort.ts";

const { server, client } = responses() as Required<ReturnType<typeof responses>>;
const decode = (body: Body) => server.decodeRequest(deepFreeze(body), "generate");
const encode = (request: ChatRequest, of = createCallContext()) =>
  client.encodeRequest(deepFreeze(request), of) as any;

const codex: Body = JSON.parse(
  readFileSync(
    new URL("../../fixtures/recordings/responses/custom-tool/request.json", import.meta.url),
    "utf8",
  ),
);

describe("a coding client's request", () => {
  const request = decode(codex);

  it("puts the instructions before the conversation", () => {
    expect(request.instructions).toEqual([{ type: "text", text: "You are a coding agent." }]);
    expect(request.turns.map((t) => [t.role, t.blocks.map((b) => b.type)])).toEqual([
      ["user", ["text"]],
      ["assistant", ["reasoning", "text", "call"]],
      ["tool", ["result"]],
      ["assistant", ["call"]],
      ["tool", ["result"]],
    ]);
    expect(request.turns[1]!.phase).toBe("commentary");
  });

  it("keeps proofs, and flattens tool namespaces", () => {
    expect(request.turns[1]!.blocks[0]).toEqual({
      type: "reasoning",
      summary: ["Look first."],
      proof: { origin: "responses", kind: "encrypted", data: "gAAAAA==" },
    });
    expect(request.tools.map((t) => [t.type, t.name])).toEqual([
      ["function", "exec_command"],
      ["custom", "apply_patch"],
      ["function", "crm__find"],
    ]);
  });

  it("reports what others do not support: offline web search and tool search", () =>
    expect(Object.keys(request.ext["responses"] as JsonObject)).toEqual([
      "tools.web_search",
      "tools.tool_search",
    ]));

  it("is sent back unchanged", () => {
    const { input, tools, include, client_metadata, reasoning } = encode(request);
    expect(input).toEqual(codex["input"]);
    const names = (list: any) => list.map((t: any) => t.name ?? t.type).toSorted();
    expect(names(tools)).toEqual(names(codex["tools"]));
    expect({ include, client_metadata, reasoning }).toEqual({
      include: codex["include"],
      client_metadata: codex["client_metadata"],
      reasoning: codex["reasoning"],
    });
  });

  it("is encoded again only in edited parts", () => {
    const touched: ChatRequest = {
      ...request,
      turns: request.turns.map((turn, i) =>
        i === 0 ? { ...turn, blocks: [{ type: "text", text: "[hidden]" }] } : turn,
      ),
    };
    const { input } = encode(touched);
    expect(input[1]).toEqual({
      type: "message",
      role: "user",
      content: [{ type: "input_text", text: "[hidden]" }],
    });
    expect(input.toSpliced(1, 1)).toEqual((codex["input"] as unknown[]).toSpliced(1, 1));
  });
});

describe("tools by name", () => {
  const body: Body = {
    model: "m",
    tools: [
      { type: "web_search_preview" },
      { type: "namespace", name: "crm", tools: [{ type: "function", name: "find" }] },
    ],
    input: [
      { role: "user", content: "Hi" },
      { type: "function_call", call_id: "c", namespace: "crm", name: "find", arguments: "{}" },
      { type: "function_call_output", call_id: "c", output: "x" },
    ],
  };

  it("are chosen as declared", () => {
    const chosen = (tool_choice: any) => {
      const request = decode({ ...body, tool_choice }) as ChatRequest;
      expect(encode(request).tool_choice).toEqual(tool_choice);
      const copied = { ...request, toolChoice: structuredClone(request.toolChoice) };
      return [request.toolChoice, encode(copied).tool_choice];
    };
    const search = { type: "web_search_preview" };
    expect(chosen(search)).toEqual([{ names: ["web_search"], must: true }, search]);
    const find = { type: "function", name: "find", namespace: "crm" };
    expect(chosen(find)).toEqual([{ names: ["crm__find"], must: true }, find]);
    const some = { type: "allowed_tools", mode: "auto", tools: [find, search] };
    expect(chosen(some)).toEqual([{ names: ["crm__find", "web_search"], must: false }, some]);
  });

  it("carry the description of their namespace, once, to protocols without namespaces", () => {
    const find = { type: "function", name: "find", description: "Finds a customer." };
    const drop = { type: "function", name: "drop", description: "Drops one." };
    const crm = { type: "namespace", name: "crm", description: "Customers.", tools: [find, drop] };
    const request = decode({ ...body, tools: [crm] }) as ChatRequest;
    const said = chatCompletions().client!.encodeRequest(request, createCallContext())[
      "tools"
    ] as any[];
    expect(said.map((tool) => tool.function.description)).toEqual([
      "Customers.\n\nFinds a customer.",
      "Drops one.",
    ]);
    expect(encode(request).tools).toEqual([crm]);
  });

  it("are called in their namespace, also after an edit of the turn", () => {
    const request = decode(body) as ChatRequest;
    const { input } = encode({ ...request, turns: structuredClone(request.turns) as any });
    expect(input[1]).toMatchObject({ name: "find", namespace: "crm" });
  });
});

describe("a request", () => {
  it("is one user message if its input is a string", () =>
    expect(decode({ model: "m", input: "Hi" }).turns).toEqual([
      { role: "user", blocks: [{ type: "text", text: "Hi" }] },
    ]));

  it("keeps unknown fields and fields of this protocol separately", () => {
    const request = decode({
      model: "m",
      input: "Hi",
      x_new: 1,
      truncation: "auto",
      include: ["a"],
    });
    expect(request.rest).toEqual({ x_new: 1 });
    expect(request.ext).toEqual({ responses: { truncation: "auto" } });
  });

  it("that depends on the upstream's stored state is rejected elsewhere, never served without it", () => {
    const bodies: Body[] = [
      {
        model: "m",
        input: [
          { role: "user", content: "x" },
          { type: "item_reference", id: "msg_1" },
        ],
      },
      { model: "m", input: "x", prompt: { id: "pmpt_1", variables: { a: "b" } } },
    ];
    for (const body of bodies) {
      const request = decode(body) as ChatRequest;
      for (const other of [chatCompletions(), messages()])
        expect(
          faultFrom(() => other.client!.encodeRequest(request as never, createCallContext())).kind,
        ).toBe("unsupported");
      // This protocol echoes it, edited or not.
      for (const same of [request, { ...request, turns: structuredClone(request.turns) as any }]) {
        const wire = encode(same);
        expect(wire.prompt).toEqual(body["prompt"]);
        expect(JSON.stringify(wire.input)).not.toContain("stored_prompt");
        expect(wire.input.length).toBe(body["prompt"] ? 1 : 2);
      }
    }
  });

  it("reports errors with their location", () => {
    const wrong = (item: any) =>
      faultFrom(() => decode({ model: "m", input: [{ role: "user", content: "x" }, item] }));
    expect(wrong({ type: "function_call", name: "f", arguments: "{}" })).toMatchObject({
      kind: "invalid",
      param: "input[1].call_id",
    });
    expect(wrong({ type: "function_call", call_id: "c", name: "f", arguments: {} }).param).toBe(
      "input[1].arguments",
    );
    expect(wrong({ role: "robot", content: "x" }).param).toBe("input[1].role");
    expect(wrong({ role: "user", content: [{ type: "input_image" }] }).param).toBe(
      "input[1].content[0]",
    );
  });

  it("with an unknown type of tool has a hosted tool; a tool without a type is invalid", () => {
    const seen = (tool: object) =>
      server.analyze({ model: "m", input: "x", tools: [tool] } as never);
    expect(seen({ type: "web_serch" }).features).toEqual(["hosted.web_serch"]);
    expect(seen({ type: "acme:thing" }).features).toEqual(["hosted.acme:thing"]);
    expect(faultFrom(() => seen({ name: "f" }))).toMatchObject({
      kind: "invalid",
      param: "tools[0].type",
    });
  });

  it("is analyzed for its needs and stored objects", () =>
    expect(
      server
        .analyze({
          model: "m",
          stream: true,
          store: true,
          previous_response_id: "resp_1",
          conversation: "conv_1",
          background: true,
          prompt: { id: "p" },
          instructions: "x",
          max_output_tokens: 7,
          top_logprobs: 2,
          parallel_tool_calls: true,
          reasoning: { effort: "low" },
          text: { format: { type: "json_schema", name: "n", schema: {} } },
          tools: [
            { type: "function", name: "f" },
            { type: "file_search", vector_store_ids: ["vs_1"] },
            { type: "code_interpreter", container: "cntr_1" },
          ],
          input: [
            {
              role: "user",
              content: [
                { type: "input_image", file_id: "file_1" },
                { type: "input_file", file_url: "https://a.example/b.pdf" },
                { type: "input_audio", input_audio: { data: "", format: "wav" } },
              ],
            },
          ],
        })
        .features.toSorted(),
    ).toEqual(
      (
        "stream tools parallel_tools hosted.file_search hosted.code_interpreter system vision documents audio " +
        "json_schema reasoning logprobs state.store state.previous_response_id state.conversation " +
        "state.background state.prompt state.file state.vector_store state.container"
      )
        .split(" ")
        .toSorted(),
    ));

  it("adds the tools of its items, each once", () => {
    const body: Body = {
      model: "m",
      tools: [{ type: "function", name: "a", strict: false }],
      input: [
        { role: "user", content: "Hi" },
        {
          type: "tool_search_output",
          tools: [
            { type: "function", name: "b" },
            { type: "function", name: "a" },
          ],
        },
      ],
    };
    const request = decode(body);
    expect(request.tools.map((t) => t.name)).toEqual(["a", "b"]);
    expect(encode(request)).toMatchObject({ tools: body["tools"], input: body["input"] });
  });

  it("keeps separate messages apart, and merges parts of one step", () => {
    const say = (text: string) => ({ type: "message", role: "assistant", content: text });
    const call = (id: string) => ({
      type: "function_call",
      call_id: id,
      name: "f",
      arguments: "{}",
    });
    const think = { type: "reasoning", summary: [], encrypted_content: "e" };
    const shape = (...input: any[]) =>
      decode({ model: "m", input }).turns.map((t) => t.blocks.map((b) => b.type).join(" "));
    expect(shape(say("a"), say("b"))).toEqual(["text", "text"]);
    expect(shape(say("a"), think, say("b"))).toEqual(["text", "reasoning text"]);
    expect(shape(think, say("a"), call("1"), call("2"))).toEqual(["reasoning text call call"]);
    expect(shape(think, call("1"), think, call("2"))).toEqual(["reasoning call reasoning call"]);
  });
});

describe("another protocol's request", () => {
  const base = createChatRequest();
  const refusal = (more: Partial<ChatRequest>) => faultFrom(() => encode({ ...base, ...more }));
  const losses = (more: Partial<ChatRequest>, info: any = {}) => {
    const of = createCallContext({ info: { model: "m", operation: "chat", ...info } });
    encode({ ...base, ...more }, of);
    return of.losses.map(({ field, how }) => `${field} ${how}`);
  };

  it("is rejected if a missing field would change the response", () => {
    for (const [param, more] of Object.entries<Partial<ChatRequest>>({
      n: { sampling: { n: 2 } },
      modalities: { output: { modalities: ["text", "audio"] } },
    }))
      expect(refusal(more)).toMatchObject({ kind: "unsupported", param });
    const media = (block: any) => refusal({ turns: [{ role: "user", blocks: [block] }] }).kind;
    expect(media({ type: "video", media: { url: "https://a.example" } })).toBe("unsupported");
    expect(media({ type: "audio", media: { url: "https://a.example" } })).toBe("unsupported");
    expect(media({ type: "audio", media: { mime: "audio/flac", base64: "" } })).toBe("unsupported");
    expect(media({ type: "image", media: { fileId: "f", origin: "messages" } })).toBe(
      "unsupported",
    );
    expect(media({ type: "opaque", origin: "messages", raw: { type: "new" } })).toBe("unsupported");
    expect(
      refusal({ tools: [{ type: "hosted", name: "bash", origin: "messages", raw: {} }] }).param,
    ).toBe("tools");
    expect(refusal({ turns: [] }).code).toBe("empty_input");
  });

  it("reports each dropped field once", () => {
    expect(
      losses({
        sampling: { topK: 4, seed: 1, logitBias: {}, presence: 1, frequency: 1 },
        ext: { messages: { context_management: {} } },
        output: { maxTokens: 3 },
        turns: [
          {
            role: "user",
            name: "n",
            blocks: [
              { type: "text", text: "a", cache: { type: "ephemeral" } },
              { type: "text", text: "b", cache: { type: "ephemeral" } },
            ],
          },
          { role: "tool", blocks: [{ type: "result", callId: "c", blocks: [], isError: true }] },
        ],
      }),
    ).toEqual([
      "top_k dropped",
      "seed dropped",
      "logit_bias dropped",
      "presence_penalty dropped",
      "frequency_penalty dropped",
      "context_management dropped",
      "name dropped",
      "cache_control dropped",
      "is_error dropped",
      "max_tokens approximated",
    ]);
    expect(losses({})).toEqual([]);
  });

  it("requests the closest reasoning effort of this protocol", () => {
    const thinking = (reasoning: ChatRequest["reasoning"], can?: boolean) =>
      encode(
        { ...base, reasoning },
        createCallContext({ info: { model: "m", operation: "chat", can: { reasoning: can } } }),
      ).reasoning;
    expect(thinking({ mode: "budget", budget: 1000 }, true)).toEqual({ effort: "minimal" });
    expect(thinking({ mode: "budget", budget: 20_000 }, true)).toEqual({ effort: "high" });
    expect(thinking({ mode: "effort", effort: "max", show: "full" }, true)).toEqual({
      effort: "max",
      summary: "auto",
    });
    expect(thinking({ mode: "off" }, true)).toEqual({ effort: "none" });
    expect(thinking({ mode: "off" }, false)).toBeUndefined();
    expect(thinking({ mode: "effort", effort: "low" }, false)).toBeUndefined();
    expect(losses({ reasoning: { mode: "off" } })).toEqual(["reasoning approximated"]);
  });

  it("requests encrypted reasoning for the next turn, if available", () => {
    const include = (reasoning: ChatRequest["reasoning"], can?: boolean) =>
      encode(
        { ...base, reasoning },
        createCallContext({ info: { model: "m", operation: "chat", can: { reasoning: can } } }),
      ).include;
    expect(include({ mode: "auto" }, true)).toEqual(["reasoning.encrypted_content"]);
    expect(include({ mode: "effort", effort: "low" })).toEqual(["reasoning.encrypted_content"]);
    expect(include({ mode: "auto" })).toBeUndefined();
    expect(include({ mode: "effort", effort: "low" }, false)).toBeUndefined();
  });

  it("never sends foreign reasoning, and sends its own back", () => {
    const items = (origin: string) =>
      encode({
        ...base,
        turns: [
          ...base.turns,
          {
            role: "assistant",
            blocks: [
              { type: "reasoning", text: "secret", proof: { origin, kind: "k", data: "d" } },
              { type: "text", text: "x" },
            ],
          },
          ...base.turns,
        ],
      }).input.map((i: any) => i.type);
    expect(items("messages")).toEqual(["message", "message", "message"]);
    expect(items("responses")).toEqual(["message", "reasoning", "message", "message"]);
  });

  it("links calls and results by valid IDs", () => {
    const id = "toolu_".padEnd(90, "x");
    const { input } = encode({
      ...base,
      turns: [
        {
          role: "assistant",
          blocks: [{ type: "call", id, name: "f", tool: "custom", args: "in" }],
        },
        { role: "tool", blocks: [{ type: "result", callId: id, blocks: [], isError: false }] },
      ],
    });
    expect(input[0]).toMatchObject({ type: "custom_tool_call", input: "in" });
    expect(input[1]).toMatchObject({ type: "custom_tool_call_output", output: "" });
    expect(input[0].call_id).toBe(input[1].call_id);
    expect(input[0].call_id.length).toBeLessThanOrEqual(64);
  });

  it("declares tools in this protocol's form", () => {
    const { tools, tool_choice } = encode({
      ...base,
      tools: [
        { type: "function", name: "f" },
        { type: "function", name: "a.b".padEnd(70, "c"), schema: { type: "object" }, strict: true },
        { type: "custom", name: "c", raw: { type: "grammar", syntax: "lark", definition: "x" } },
        {
          type: "hosted",
          name: "web_search",
          origin: "messages",
          raw: {
            type: "web_search_20250305",
            allowed_domains: ["a.example"],
            user_location: { type: "approximate", city: "Oslo" },
          },
        },
        {
          type: "hosted",
          name: "web_search",
          origin: "chat-completions",
          raw: { user_location: { type: "approximate", approximate: { city: "Oslo" } } },
        },
      ],
      toolChoice: { names: ["c"], must: true },
    });
    expect(tools).toMatchObject([
      { name: "f", strict: false, parameters: { type: "object", properties: {} } },
      { strict: true },
      { type: "custom", format: { type: "grammar", syntax: "lark" } },
      {
        type: "web_search",
        filters: { allowed_domains: ["a.example"] },
        user_location: { type: "approximate", city: "Oslo" },
      },
      { type: "web_search", user_location: { type: "approximate", city: "Oslo" } },
    ]);
    expect(tools[1].name).toMatch(/^[\w-]{1,64}$/);
    expect(tool_choice).toEqual({ type: "custom", name: "c" });
  });

  it("counts tokens with the counted fields only", () =>
    expect(
      Object.keys(
        encode({ ...base, state: { store: true } }, createCallContext({ actionType: "count" })),
      ).toSorted(),
    ).toEqual(["input", "model"]));
});

describe("any request of this protocol", () => {
  const word = fc.string({ unit: "grapheme", minLength: 1, maxLength: 8 });
  const id = fc.stringMatching(/^[a-z]{3,8}$/);
  const part = fc.oneof(
    word.map((text) => ({ type: "input_text", text })),
    fc.constantFrom(
      { type: "input_image", image_url: "https://a.example/i.png", detail: "low" },
      { type: "input_image", image_url: "data:image/png;base64,AAAA" },
      { type: "input_file", filename: "a.pdf", file_data: "data:application/pdf;base64,AAAA" },
      { type: "input_file", file_url: "https://a.example/a.pdf" },
      { type: "input_audio", input_audio: { data: "AAAA", format: "mp3" } },
      { type: "input_new", x: 1 },
    ),
  );
  const item = fc.oneof(
    fc.record({ role: fc.constantFrom("user", "system", "developer"), content: word }),
    fc.record(
      {
        type: fc.constant("message"),
        role: fc.constant("user"),
        content: fc.array(part, { maxLength: 3 }),
        id,
      },
      { requiredKeys: ["type", "role", "content"] },
    ),
    fc.record(
      {
        role: fc.constant("assistant"),
        content: fc.oneof(
          word,
          fc.array(
            fc.oneof(
              word.map((text) => ({ type: "output_text", text, annotations: [] })),
              word.map((refusal) => ({ type: "refusal", refusal })),
            ),
            { minLength: 1, maxLength: 2 },
          ),
        ),
        phase: fc.constantFrom("commentary", "final_answer"),
      },
      { requiredKeys: ["role", "content"] },
    ),
    fc.record({
      type: fc.constant("reasoning"),
      summary: fc.array(
        word.map((text) => ({ type: "summary_text", text })),
        { maxLength: 2 },
      ),
      encrypted_content: id,
    }),
    fc.record({
      type: fc.constant("function_call"),
      call_id: id,
      name: id,
      arguments: fc.constantFrom("{}", '{"a":1}', "not json"),
    }),
    fc.record({
      type: fc.constant("function_call_output"),
      call_id: id,
      // Tool results contain text and media, and no audio.
      output: fc.oneof(
        word,
        fc.array(
          part.filter((p) => p.type !== "input_audio"),
          { minLength: 2, maxLength: 3 },
        ),
      ),
    }),
    fc.record({ type: fc.constant("custom_tool_call"), call_id: id, name: id, input: word }),
    fc.record({ type: fc.constantFrom("web_search_call", "new_call", "new_call_output"), id }),
  );
  const body = fc.record({
    model: fc.constant("m"),
    input: fc.array(item, { minLength: 1, maxLength: 8 }),
    instructions: fc.option(word, { nil: undefined }),
    temperature: fc.option(fc.constant(0.5), { nil: undefined }),
    tool_choice: fc.constantFrom(
      undefined,
      "auto",
      "required",
      { type: "function", name: "f" },
      {
        type: "allowed_tools",
        mode: "auto",
        tools: [
          { type: "function", name: "f" },
          { type: "custom", name: "c" },
        ],
      },
    ),
    tools: fc.constant([
      { type: "function", name: "f", parameters: { type: "object" } },
      { type: "custom", name: "c", format: { type: "text" } },
      { type: "file_search", vector_store_ids: ["v"] },
    ]),
    text: fc.constantFrom(
      undefined,
      { format: { type: "json_object" } },
      { format: { type: "json_schema", name: "n", schema: {} }, verbosity: "low" },
    ),
    metadata: fc.constantFrom(undefined, { a: "b" }),
  });
  const same = (b: any) => JSON.parse(JSON.stringify(b));

  it("is unchanged if it was not edited", () =>
    fc.assert(
      fc.property(body, (raw) => {
        const sent = same(raw);
        const of = createCallContext();
        const wire = withoutUndefined(encode(decode(sent) as ChatRequest, of)) as any;
        const { input, tools, instructions, text, metadata, tool_choice, temperature } = wire;
        expect(
          same({
            model: wire.model === "model" ? "m" : "?",
            input,
            tools,
            instructions,
            text,
            metadata,
            tool_choice,
            temperature,
          }),
        ).toEqual(sent);
        expect(of.losses.filter((l) => l.field !== "messages")).toEqual([]);
      }),
      { numRuns: trialCount(200) },
    ));

  it("keeps its meaning if it is encoded again", () =>
    fc.assert(
      fc.property(body, (raw) => {
        const first = decode(same(raw)) as ChatRequest;
        // A copy has lost its original form.
        const again = decode(same(encode(structuredClone(first)))) as ChatRequest;
        const meaning = ({ ext: _e, model: _m, ...r }: ChatRequest) => withoutUndefined(r);
        // A result only states its type of call if that call is known.
        expect(meaning(again)).toEqual(meaning(first));
      }),
      { numRuns: trialCount(300) },
    ));
});
