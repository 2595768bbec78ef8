// Requests in every protocol and every ordered pair: the model reads what the client wrote, and
// every change was reported.
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  getFault,
  type Body,
  type ClientHalf,
  type Operation,
  type ChatRequest,
  type Protocol,
} from "tollgate/plugin";
import {
  createCallContext,
  deepFreeze,
  withoutUndefined,
  encodeOutgoing,
  type ReportedLoss,
} from "tollgate/testing";
import { requests } from "./generators/arbitrary.ts";
import { chats, upstreams } from "./generators/codecs.ts";
import { conversation, silently } from "./generators/essence.ts";
import { trialCount } from "../kit/law-effort.ts";

const names = Object.keys(upstreams);
const pairs = Object.keys(chats).flatMap((a) =>
  names.filter((b) => b !== a).map((b): [string, string] => [a, b]),
);
const RUNS = trialCount(200);

interface Sent {
  readonly body: Body;
  readonly losses: readonly ReportedLoss[];
}

/** The outgoing request. Undefined if this protocol rejects it. */
function sent({ id, client }: Protocol<"chat">, request: ChatRequest): Sent | undefined {
  const of = createCallContext({ model: request.model, stream: request.stream });
  try {
    const { body } = encodeOutgoing(
      client as ClientHalf<Operation>,
      deepFreeze(structuredClone(request)),
      of,
    );
    // If they are in the path, a frontend adds them to the body.
    const { model, stream } = request;
    const beside = id === "gemini" ? { model, stream } : {};
    return { body: JSON.parse(JSON.stringify({ ...body, ...beside })), losses: of.losses };
  } catch (error) {
    if (getFault(error)?.kind === "unsupported") return undefined;
    throw error;
  }
}
const read = ({ server }: Protocol<"chat">, body: Body) =>
  server!.decodeRequest(deepFreeze(body), "generate");
const spoken = ({ field }: ReportedLoss) =>
  /system|role|developer|instructions|message/i.test(field);

describe.each(names)("a request in %s", (name) => {
  const codec = upstreams[name]!;

  it("keeps its content: text, media, calls, and results, in order", () => {
    fc.assert(
      fc.property(requests({ media: true }), (request) => {
        const wire = sent(codec, request);
        expect(wire, "plain things can be said").toBeDefined();
        expect(conversation(read(codec, wire!.body))).toEqual(conversation(request));
      }),
      { numRuns: RUNS },
    );
  });

  it("reports every change", () => {
    let refused = 0;
    fc.assert(
      fc.property(requests({ knobs: true }), (request) => {
        const wire = sent(codec, request);
        if (!wire) return void refused++;
        expect(silently(request, read(codec, wire.body), wire.losses)).toEqual([]);
      }),
      { numRuns: RUNS },
    );
    expect(refused, "some are sent").toBeLessThan(RUNS);
  });

  it("is unchanged when it is encoded again", () => {
    fc.assert(
      fc.property(requests({ media: true, knobs: true, interjections: true }), (request) => {
        const first = sent(codec, request);
        if (!first) return;
        const again = sent(codec, read(codec, first.body));
        expect(again?.losses).toEqual([]);
        expect(withoutUndefined(again!.body)).toEqual(withoutUndefined(first.body));
      }),
      { numRuns: RUNS },
    );
  });

  it("keeps interjections in place, or reports their change", () => {
    fc.assert(
      fc.property(requests({ interjections: true }), (request) => {
        const wire = sent(codec, request);
        if (!wire || wire.losses.some(spoken)) return;
        expect(conversation(read(codec, wire.body))).toEqual(conversation(request));
      }),
      { numRuns: RUNS },
    );
  });
});

describe.each(pairs)("a request from %s to %s", (from, into) => {
  const [a, b] = [chats[from]!, upstreams[into]!];
  /** In the first protocol's form. */
  const asWritten = (request: ChatRequest) => {
    const wire = sent(a, request);
    return wire && read(a, wire.body);
  };

  it("keeps its meaning", () => {
    fc.assert(
      fc.property(requests({ media: true }), (request) => {
        const written = asWritten(request)!;
        const wire = sent(b, written);
        expect(wire, "plain things can be said").toBeDefined();
        expect(conversation(read(b, wire!.body))).toEqual(conversation(request));
      }),
      { numRuns: RUNS },
    );
  });

  it("reports every change", () => {
    fc.assert(
      fc.property(requests({ knobs: true }), (request) => {
        const written = asWritten(request);
        const wire = written && sent(b, written);
        if (!wire) return;
        expect(silently(written, read(b, wire.body), wire.losses)).toEqual([]);
      }),
      { numRuns: RUNS },
    );
  });

  it("contains no fields of the first protocol", () => {
    fc.assert(
      fc.property(requests({ knobs: true }), (request) => {
        const written = asWritten(request);
        const wire = written && sent(b, written);
        if (!wire) return;
        // The result is in the second protocol's form: no field of the first one is left.
        expect(read(b, wire.body).rest).toEqual({});
      }),
      { numRuns: RUNS },
    );
  });
});
