// Messages and Responses: deltas with known bytes are forwarded without parsing. A relay without
// known ones must have the same result, for any chunks: the same bytes for the client, the same
// text, the same end, the same fault. Chat has its own test, because its events contain the model.
import * as fc from "fast-check";
import { expect, test, vi } from "vitest";
import { getFault } from "../../src/model/error.ts";
import type { Usage } from "../../src/model/usage.ts";
import { messages } from "../../src/protocols/messages/index.ts";
import { responses } from "../../src/protocols/responses/index.ts";
import { EventTemplates } from "../../src/protocols/sse/event-templates.ts";
import { createResponseContext } from "../../src/testing/index.ts";
import { trialCount } from "../kit/law-effort.ts";

const WIRES = {
  messages: {
    client: messages().client!,
    before:
      'event: message_start\ndata: {"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],"usage":{"input_tokens":3,"output_tokens":1}}}\n\n',
    delta: (words: string, kind: number) =>
      [
        `event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"${words}"}}`,
        `event: content_block_delta\ndata: {"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"${words}"}}`,
        `event: content_block_delta\ndata: {"type":"content_block_delta","index":2,"delta":{"type":"signature_delta","signature":"${words}"}}`,
        `data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"${words}"}}`,
      ][kind % 4]!,
    others: [
      ": ping",
      "",
      'event: ping\ndata: {"type":"ping"}',
      'event: message_delta\ndata: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":4}}',
      'event: message_stop\ndata: {"type":"message_stop"}',
      'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"no"}}',
    ],
  },
  responses: {
    client: responses().client!,
    before:
      'event: response.created\ndata: {"type":"response.created","sequence_number":0,"response":{"id":"resp_1","object":"response","status":"in_progress","model":"m","output":[]}}\n\n',
    delta: (words: string, kind: number) =>
      [
        `event: response.output_text.delta\ndata: {"type":"response.output_text.delta","sequence_number":${kind},"item_id":"i","output_index":0,"content_index":0,"delta":"${words}","logprobs":[],"obfuscation":"x${kind}"}`,
        `event: response.function_call_arguments.delta\ndata: {"type":"response.function_call_arguments.delta","sequence_number":${kind},"item_id":"i","output_index":0,"delta":"${words}"}`,
        `event: response.audio.delta\ndata: {"type":"response.audio.delta","sequence_number":${kind},"delta":"${words}"}`,
        `event: response.output_text.delta\ndata: {"type":"response.output_text.delta","sequence_number":0${kind},"item_id":"i","output_index":0,"content_index":0,"delta":"${words}","logprobs":[],"obfuscation":"x${kind}"}`,
      ][kind % 4]!,
    others: [
      ": ping",
      "",
      'event: response.output_item.done\ndata: {"type":"response.output_item.done","sequence_number":9,"item":{"type":"message","content":[{"type":"output_text","text":"all"}]}}',
      'event: response.completed\ndata: {"type":"response.completed","sequence_number":9,"response":{"id":"resp_1","status":"completed","model":"m","output":[],"usage":{"input_tokens":3,"output_tokens":4,"total_tokens":7}}}',
      'event: error\ndata: {"type":"error","code":"server_error","message":"no"}',
      "data: [DONE]",
    ],
  },
};

type Wire = (typeof WIRES)[keyof typeof WIRES];

/** Everything that a relay reports for these chunks, including its fault. */
function heard({ client }: Wire, chunks: readonly Buffer[]) {
  const out: Buffer[] = [];
  const said = { words: 0, ids: [] as string[], usage: [] as unknown[], finish: "", fault: "" };
  const relay = client.createPassthrough!(
    {
      setContentType() {},
      write: (b) => void out.push(Buffer.from(b)),
      reportContent: (bytes = 0) => void (said.words += bytes),
      reportStart: (id) => void said.ids.push(id),
      reportUsage: (seen) => void said.usage.push(seen),
      reportFinish(reason): Usage {
        said.finish = reason;
        return { input: 1, output: 2 };
      },
    },
    createResponseContext({ stream: true, body: {} }),
    {},
  );
  try {
    for (const chunk of chunks) relay.push(Buffer.from(chunk));
    relay.end();
  } catch (thrown) {
    const fault = getFault(thrown);
    if (!fault) throw thrown;
    said.fault = `${fault.code}: ${fault.message}`;
    // An error continues the numbering after the last forwarded event.
    relay.writeFault(fault);
  }
  return {
    ...said,
    bytes: Buffer.concat(out)
      .toString("latin1")
      .replace(/"created_at":\d+/g, ""),
  };
}

/** The same from a relay that learns nothing. */
function unlearned(wire: Wire, body: Buffer) {
  const find = vi.spyOn(EventTemplates.prototype, "find").mockReturnValue(false);
  try {
    return heard(wire, [body]);
  } finally {
    find.mockRestore();
  }
}

const inside = fc.oneof(
  { weight: 6, arbitrary: fc.string({ maxLength: 12 }).map((s) => JSON.stringify(s).slice(1, -1)) },
  { weight: 2, arbitrary: fc.nat({ max: 300 }).map((n) => "long ".repeat(n)) },
  {
    weight: 1,
    arbitrary: fc.constantFrom(
      "é",
      "\\u0022",
      "\\\\",
      '\\"delta\\":\\"',
      '"',
      "\\",
      '","x":"',
      "\n\n",
    ),
  },
);

const talk = ({ before, delta, others }: Wire, ends: readonly string[]) =>
  fc
    .array(
      fc
        .tuple(
          fc.oneof(
            {
              weight: 10,
              arbitrary: fc.tuple(inside, fc.nat({ max: 99 })).map(([w, n]) => delta(w, n)),
            },
            { weight: 1, arbitrary: fc.constantFrom(...others) },
          ),
          fc.constantFrom(...ends),
        )
        .map((event) => event.join("")),
      { minLength: 1, maxLength: 24 },
    )
    .map((rest) =>
      Buffer.from(
        `${before}${[0, 1, 4, 5].map((n) => `${delta("a", n)}\n\n`).join("")}${rest.join("")}`,
      ),
    );

function pieces(body: Buffer, at: readonly number[]): Buffer[] {
  const places = [...new Set([0, ...at.map((c) => c % body.length), body.length])];
  const sorted = places.toSorted((a, b) => a - b);
  return sorted.slice(1).map((to, i) => body.subarray(sorted[i], to));
}
const cuts = fc.array(fc.nat({ max: 4000 }), { maxLength: 12 });

test.each(Object.entries(WIRES))(
  "%s: known events are forwarded as if they were parsed",
  (_, wire) => {
    fc.assert(
      fc.property(talk(wire, ["\n\n", "\n\n", "\n\n\n", "\n"]), cuts, (body, at) => {
        const slowly = unlearned(wire, body);
        expect(heard(wire, [body])).toEqual(slowly);
        expect(heard(wire, pieces(body, at))).toEqual(slowly);
      }),
      { numRuns: trialCount(300) },
    );
  },
);

test.each(Object.entries(WIRES))("%s: also if some lines end with CR", (_, wire) => {
  fc.assert(
    fc.property(talk(wire, ["\n\n", "\r\n\r\n", "\r\r", "\n\r\n"]), (body) => {
      expect(heard(wire, [body])).toEqual(unlearned(wire, body));
    }),
    { numRuns: trialCount(200) },
  );
});

test.each(Object.entries(WIRES))(
  "%s: deltas of one form are known from the third on",
  (_, wire) => {
    const find = vi.spyOn(EventTemplates.prototype, "find");
    const body = [0, 4, 8, 12, 16, 20].map((n) => `${wire.delta(`word ${n}`, n)}\n\n`).join("");
    heard(wire, [Buffer.from(wire.before), Buffer.from(body)]);
    expect(find.mock.results.filter(({ value }) => value === true).length).toBeGreaterThanOrEqual(
      4,
    );
    find.mockRestore();
  },
);
