// Signed content is returned to its provider: a response is sent in one protocol, the client sends
// it back with its next turn as clients do, and upstream gets its own proof again, byte for byte,
// next to its content.
import { describe, expect, it } from "vitest";
import {
  collectResponse,
  type Body,
  type ChatRequest,
  type ClientHalf,
  type JsonObject,
  type Operation,
  type ModelEvent,
  type Protocol,
} from "tollgate/plugin";
import {
  createResponseContext,
  createCallContext,
  decode,
  encodeText,
  deepFreeze,
  encodeOutgoing,
  think,
  type ModelScript,
} from "tollgate/testing";
import { chats, upstreams } from "./generators/codecs.ts";
import { said } from "./generators/essence.ts";
import { inGemini } from "./gemini/speech.ts";

const TEXT = " First, the weather.\n\nThen — “naturally” — the rest.  ";
const SIGNATURE = 'EqQBCkYIAhgC+/="sig"';
const ASKED = "What is the weather?";

/** How clients of each protocol add a response and a tool's result to the next request. */
const CLIENTS: {
  readonly [protocol: string]: {
    first(): JsonObject;
    next(first: any, answer: any): JsonObject;
  };
} = {
  "chat-completions": {
    first: () => ({
      model: "m",
      messages: [{ role: "user", content: ASKED }],
      tools: [{ type: "function", function: { name: "get_weather", parameters: SCHEMA } }],
    }),
    next: (first, { choices: [{ message }] }) => ({
      ...first,
      messages: [
        ...first.messages,
        message,
        ...(message.tool_calls ?? []).map((call: any) => ({
          role: "tool",
          tool_call_id: call.id,
          content: "Rain.",
        })),
      ],
    }),
  },
  messages: {
    first: () => ({
      model: "m",
      max_tokens: 4000,
      thinking: { type: "enabled", budget_tokens: 2000 },
      messages: [{ role: "user", content: ASKED }],
      tools: [{ name: "get_weather", input_schema: SCHEMA }],
    }),
    next: (first, { content }) => ({
      ...first,
      messages: [
        ...first.messages,
        { role: "assistant", content },
        {
          role: "user",
          content: content
            .filter((block: any) => block.type === "tool_use")
            .map((block: any) => ({
              type: "tool_result",
              tool_use_id: block.id,
              content: "Rain.",
            })),
        },
      ],
    }),
  },
  responses: {
    first: () => ({
      model: "m",
      store: false,
      include: ["reasoning.encrypted_content"],
      input: [{ role: "user", content: ASKED }],
      tools: [{ type: "function", name: "get_weather", parameters: SCHEMA, strict: false }],
    }),
    next: (first, { output }) => ({
      ...first,
      input: [
        ...first.input,
        ...output,
        ...output
          .filter((item: any) => item.type === "function_call")
          .map((item: any) => ({
            type: "function_call_output",
            call_id: item.call_id,
            output: "Rain.",
          })),
      ],
    }),
  },
  gemini: {
    first: () => ({
      model: "m",
      contents: [{ role: "user", parts: [{ text: ASKED }] }],
      tools: [{ functionDeclarations: [{ name: "get_weather", parametersJsonSchema: SCHEMA }] }],
    }),
    next: (first, { candidates: [{ content }] }) => ({
      ...first,
      contents: [
        ...first.contents,
        content,
        {
          role: "user",
          parts: content.parts
            .filter((part: any) => part.functionCall)
            .map(({ functionCall: { id, name } }: any) => ({
              functionResponse: { id, name, response: { output: "Rain." } },
            })),
        },
      ],
    }),
  },
};
const SCHEMA = { type: "object", properties: { city: { type: "string" } } };

/** The proofs in an upstream's request, with their text. */
const FOUND: { readonly [protocol: string]: (body: any) => unknown } = {
  messages: ({ messages }) =>
    messages
      .flatMap((turn: any) => (Array.isArray(turn.content) ? turn.content : []))
      .filter((block: any) => /thinking/.test(block.type)),
  responses: ({ input }) =>
    input
      .filter((item: any) => item.type === "reasoning")
      .map(({ summary, encrypted_content }: any) => ({
        summary: summary.filter((part: any) => part.text !== ""),
        encrypted_content,
      })),
  // Reasoning is omitted, and its signature is on the call that followed.
  gemini: ({ contents }) =>
    contents.flatMap(({ parts }: any) => parts).filter((part: any) => part.thoughtSignature),
};
const EXPECTED: { readonly [protocol: string]: (words: string) => unknown } = {
  messages: (words) =>
    words === ""
      ? { type: "redacted_thinking", data: SIGNATURE }
      : { type: "thinking", thinking: words, signature: SIGNATURE },
  responses: (words) => ({
    summary: words === "" ? [] : [{ type: "summary_text", text: words }],
    encrypted_content: SIGNATURE,
  }),
  gemini: () => ({
    functionCall: { id: "call_1", name: "get_weather", args: { city: "Oslo" } },
    thoughtSignature: SIGNATURE,
  }),
};

const plainJson = (value: unknown): any => JSON.parse(JSON.stringify(value));

const leaving = ({ client }: Protocol<"chat">, request: ChatRequest): any =>
  plainJson(
    encodeOutgoing(client as ClientHalf<Operation>, deepFreeze(request), createCallContext()).body,
  );

function heard(upstream: Protocol<"chat">, protocol: string, speech: ModelScript): ModelEvent[] {
  const answer =
    protocol === "gemini"
      ? inGemini(speech, { stream: true })
      : speech.toProtocol(protocol as "messages", { stream: true });
  const text = ([answer.body].flat() as any[]).map((piece) => piece.bytes ?? piece).join("");
  return decode(upstream.client as never, [Buffer.from(text)], createCallContext({ stream: true }));
}

/** The response from a client's view, or collected from its stream. */
function received(client: Protocol<"chat">, events: readonly ModelEvent[], body: Body): unknown {
  return plainJson(
    client.server!.encodeResponse(collectResponse(events), createResponseContext({ body })),
  );
}

describe.each(Object.keys(CLIENTS))("through a client of %s", (spoken) => {
  const { first, next } = CLIENTS[spoken]!;
  const client = chats[spoken]!;

  describe.each(Object.keys(FOUND))("to an upstream of %s", (protocol) => {
    const upstream = upstreams[protocol]!;
    it.each([
      ["what was thought", TEXT],
      ["what is only for upstream to read", ""],
    ])("%s is returned unchanged", (_what, words) => {
      const speech = think(words, SIGNATURE).call("get_weather", { city: "Oslo" }, "call_1");
      const body = plainJson(first());
      const answer = received(client, heard(upstream, protocol, speech), body);
      const request = client.server!.decodeRequest(
        deepFreeze(next(body, answer)) as Body,
        "generate",
      );
      const arrives = leaving(upstream, request);
      expect(FOUND[protocol]!(arrives)).toEqual([EXPECTED[protocol]!(words)]);
    });

    it("and to no other upstream", () => {
      const speech = think(TEXT, SIGNATURE).call("get_weather", {}, "call_1");
      const body = plainJson(first());
      const answer = received(client, heard(upstream, protocol, speech), body);
      const request = client.server!.decodeRequest(
        deepFreeze(next(body, answer)) as Body,
        "generate",
      );
      for (const [id, other] of Object.entries(upstreams)) {
        if (id === protocol) continue;
        const sent = JSON.stringify(leaving(other, request));
        expect(sent, id).not.toContain(JSON.stringify(SIGNATURE).slice(1, -1));
        expect(sent, id).not.toContain("tg1.");
        expect(sent, id).not.toContain("WyJ0ZzEi");
      }
    });
  });

  it("a response that is sent back equals the original", () => {
    const speech = think(TEXT).say("I will look.").call("get_weather", { city: "Oslo" }, "call_1");
    const events = heard(client, spoken, speech);
    const body = plainJson(first());
    const request = client.server!.decodeRequest(
      next(body, received(client, events, body)) as Body,
      "generate",
    );
    const blocks = request.turns.flatMap((turn) => (turn.role === "assistant" ? turn.blocks : []));
    const { text, calls } = said({ ...collectResponse(events), blocks });
    expect({ text, calls }).toMatchObject({
      text: "I will look.",
      calls: said(collectResponse(events)).calls,
    });
  });

  it("the same proofs are sent, streaming or non-streaming", () => {
    const speech = think(TEXT, SIGNATURE).call("get_weather", {}, "call_1");
    const events = heard(chats["messages"]!, "messages", speech);
    const body = plainJson(first());
    const text = encodeText(
      client.server as never,
      events,
      createResponseContext({ body, stream: true }),
    );
    const streamed = collectResponse(
      decode(client.client as never, [Buffer.from(text)], createCallContext({ stream: true })),
    );
    const whole: ModelEvent[] = [];
    client.client!.decodeResponse(
      Buffer.from(JSON.stringify(received(client, events, body))),
      (e) => whole.push(e),
      createCallContext(),
      {},
    );
    const proofs = (answer: { blocks: readonly { proof?: unknown }[] }) =>
      answer.blocks.flatMap((block) => (block.proof ? [block.proof] : []));
    expect(proofs(streamed)).toEqual(proofs(collectResponse(whole)));
    expect(proofs(streamed)).toHaveLength(1);
  });
});
