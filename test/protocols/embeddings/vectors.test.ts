// A client gets the format that it requested, whatever format a provider returns. An invalid
// response is an error.
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  getFault,
  type Body,
  type EmbeddingRequest,
  type Json,
  type ModelEvent,
} from "tollgate/plugin";
import { cohereEmbeddings } from "tollgate/protocols/cohere";
import { embeddings, type EmbeddingDialect } from "tollgate/protocols/embeddings";
import { geminiEmbedding } from "tollgate/protocols/gemini";
import { ollamaEmbeddings } from "tollgate/protocols/ollama";
import {
  createResponseContext,
  createCallContext,
  decodeWhole,
  createOutgoing,
  runRelay,
} from "tollgate/testing";
import { analyze } from "../../../src/protocols/embeddings/spec.ts";
import { encodeWhole } from "../../../src/testing/codec.ts";
import { trialCount } from "../../kit/law-effort.ts";

const wire = embeddings();
const base64 = (numbers: readonly number[]): string => {
  const bytes = Buffer.alloc(numbers.length * 4);
  numbers.forEach((one, i) => bytes.writeFloatLE(one, i * 4));
  return bytes.toString("base64");
};
const float = fc.float({ noNaN: true, noDefaultInfinity: true });
const vectors = fc
  .tuple(fc.integer({ min: 1, max: 6 }), fc.integer({ min: 1, max: 40 }))
  .chain(([count, width]) =>
    fc.array(fc.array(float, { minLength: width, maxLength: width }), {
      minLength: count,
      maxLength: count,
    }),
  );
const plainZero = (all: readonly (readonly number[])[]) =>
  all.map((numbers) => numbers.map((one) => (Object.is(one, -0) ? 0 : one)));

type Form = "float" | "base64" | undefined;
const forms = fc.constantFrom<Form>("float", "base64", undefined);

/** Upstream's response, in its own format. */
const answered = (all: readonly (readonly number[])[], form: Form): Buffer =>
  Buffer.from(
    JSON.stringify({
      object: "list",
      data: all.map((numbers, index) => ({
        object: "embedding",
        index,
        embedding: form === "base64" ? base64(numbers) : numbers,
      })),
      model: "m",
      usage: { prompt_tokens: 3, total_tokens: 3 },
    }),
  );

/** In both modes: the client's view. */
function read(said: Buffer, body: Body): { data: { index: number; embedding: Json }[] }[] {
  const to = createResponseContext({ body });
  return [
    runRelay(wire.client!, [said], to).bytes,
    encodeWhole(wire.server!, decodeWhole(wire.client!, said, createCallContext()), to),
  ].map((bytes) => JSON.parse(bytes.toString()));
}

/** As an official SDK decodes it. */
function decoded(embedding: Json, form: Form): readonly number[] {
  expect(typeof embedding).toBe(form === "base64" ? "string" : "object");
  if (typeof embedding !== "string") return embedding as number[];
  const bytes = Buffer.from(embedding, "base64");
  return Array.from({ length: bytes.length / 4 }, (_, i) => bytes.readFloatLE(i * 4));
}

const input = (count: number) => Array.from({ length: count }, (_, i) => `text ${i}`);
const body = (count: number, more: object = {}): Body => ({
  model: "p/m",
  input: input(count),
  ...more,
});

describe("the format that a client requested", () => {
  it("is returned in both modes, number for number, whatever the upstream returned", () => {
    fc.assert(
      fc.property(vectors, forms, forms, (all, asked, given) => {
        const more = asked && { encoding_format: asked };
        for (const { data } of read(answered(all, given), body(all.length, more)))
          expect(plainZero(data.map(({ embedding }) => decoded(embedding, asked)))).toEqual(
            plainZero(all),
          );
      }),
      { numRuns: trialCount(200) },
    );
  });

  it("keeps a number's digits if numbers were requested and returned", () => {
    const all = [[0.1, 0.123456789012345]];
    for (const { data } of read(answered(all, "float"), body(1)))
      expect(data[0]!.embedding).toEqual(all[0]);
  });

  it("converts bytes, signed for a signed type", () => {
    const said = (embedding: Json) =>
      Buffer.from(JSON.stringify({ data: [{ index: 0, embedding }], usage: { prompt_tokens: 1 } }));
    for (const [output_dtype, numbers] of [
      ["int8", [-128, -1, 0, 127]],
      ["binary", [-128, 127]],
      ["uint8", [0, 128, 255]],
      ["ubinary", [255, 1]],
    ] as const) {
      const text = Buffer.from(numbers.map((one) => one & 255)).toString("base64");
      for (const [form, given, wanted] of [
        ["base64", numbers, text],
        ["float", text, numbers],
      ] as const)
        for (const { data } of read(said(given), body(1, { output_dtype, encoding_format: form })))
          expect(data[0]!.embedding, output_dtype).toEqual(wanted);
    }
  });
});

describe("an invalid response", () => {
  const fails = (said: Buffer, asked: Body): (string | undefined)[] =>
    [
      () => runRelay(wire.client!, [said], createResponseContext({ body: asked })),
      () =>
        encodeWhole(
          wire.server!,
          decodeWhole(wire.client!, said, createCallContext()),
          createResponseContext({ body: asked }),
        ),
    ].map((run) => {
      try {
        run();
        return undefined;
      } catch (error) {
        const { kind, code } = getFault(error)!;
        return `${kind} ${code}`;
      }
    });

  it("has another width than requested, in either format", () => {
    fc.assert(
      fc.property(vectors, forms, fc.integer({ min: 1, max: 60 }), (all, form, dimensions) => {
        const told = fails(answered(all, form), body(all.length, { dimensions }));
        const right = all[0]!.length === dimensions;
        expect(told).toEqual(
          right ? [undefined, undefined] : Array(2).fill("upstream wrong_dimensions"),
        );
      }),
    );
  });

  it("has more or fewer embeddings than texts, or different widths", () => {
    for (const form of ["float", "base64"] as const) {
      const three = answered([[1], [2], [3]], form);
      expect(fails(three, body(2))).toEqual(Array(2).fill("upstream vectors_missing"));
      expect(fails(three, body(4))).toEqual(Array(2).fill("upstream vectors_missing"));
      expect(fails(answered([[1, 2], [3]], form), body(2))).toEqual(
        Array(2).fill("upstream wrong_dimensions"),
      );
    }
  });

  it("contains no embedding, a duplicate, or an index out of range", () => {
    const said = (...data: Json[]) => Buffer.from(JSON.stringify({ data, usage: {} }));
    for (const embedding of ["", "a", "AAA*", [], ["1"], [null], {}, null, "AAA="] as Json[])
      for (const told of fails(said({ index: 0, embedding }), body(1)))
        expect(told, JSON.stringify(embedding)).toMatch(/^upstream (bad_vector|vectors_missing)$/);
    for (const index of [1, -1, 0.5])
      expect(fails(said({ index, embedding: [1] }), body(1)), String(index)).toEqual(
        Array(2).fill("upstream bad_answer"),
      );
    expect(
      fails(said({ index: 0, embedding: [1] }, { index: 0, embedding: [2] }), body(2)),
    ).toEqual(Array(2).fill("upstream bad_answer"));
  });

  it("contains invalid numbers", () => {
    const bytes = Buffer.alloc(4);
    bytes.writeFloatLE(Number.NaN);
    const told = fails(answered([], "float"), body(1));
    expect(told).toEqual(Array(2).fill("upstream vectors_missing"));
    const nan = Buffer.from(
      JSON.stringify({ data: [{ embedding: bytes.toString("base64") }], usage: {} }),
    );
    expect(fails(nan, body(1, { encoding_format: "float" }))).toEqual(
      Array(2).fill("upstream bad_vector"),
    );
  });
});

describe("the same request in each vendor's format", () => {
  const request: EmbeddingRequest = {
    operation: "embedding",
    model: "m",
    stream: false,
    inputs: ["one", "two"],
    dimensions: 4,
    task: "document",
    truncate: "end",
    rest: {},
    ext: {},
  };
  const sent = (protocol: ReturnType<typeof cohereEmbeddings>, of = request) => {
    const told = createCallContext({ model: "m" });
    const sent = protocol.client!.encodeRequest(of, told);
    return { sent, losses: told.losses.map(({ how, field }) => `${how} ${field}`) };
  };

  it("Cohere's", () => {
    expect(sent(cohereEmbeddings())).toEqual({
      sent: {
        model: "m",
        texts: ["one", "two"],
        input_type: "search_document",
        embedding_types: ["float"],
        output_dimension: 4,
        truncate: "END",
      },
      losses: [],
    });
    const { task: _, ...without } = request;
    expect(sent(cohereEmbeddings(), without)).toMatchObject({
      sent: { input_type: "search_document" },
      losses: ["approximated input_type"],
    });
  });

  it("Gemini's", () => {
    const one = (text: string) => ({
      model: "models/m",
      content: { parts: [{ text }] },
      taskType: "RETRIEVAL_DOCUMENT",
      outputDimensionality: 4,
    });
    expect(sent(geminiEmbedding())).toEqual({
      sent: { requests: [one("one"), one("two")] },
      losses: ["dropped truncate"],
    });
  });

  it("Ollama's", () =>
    expect(sent(ollamaEmbeddings())).toEqual({
      sent: { model: "m", input: ["one", "two"], dimensions: 4, truncate: true },
      losses: ["dropped input_type"],
    }));

  it("token IDs are sent only to models that accept them", () => {
    const ids = { ...request, inputs: [[1, 2], [3]] };
    for (const protocol of [cohereEmbeddings(), geminiEmbedding(), ollamaEmbeddings()])
      expect(() => sent(protocol, ids)).toThrow(/supports text, not token IDs/);
    expect(sent(embeddings(), ids).sent["input"]).toEqual([[1, 2], [3]]);
  });

  it("every vendor's name for a task is one task, and each protocol encodes its own", () => {
    const words: readonly (readonly [string, string, string])[] = [
      ["search_query", "search_query", "RETRIEVAL_QUERY"],
      ["RETRIEVAL_DOCUMENT", "search_document", "RETRIEVAL_DOCUMENT"],
      ["retrieval.passage", "search_document", "RETRIEVAL_DOCUMENT"],
      ["clustering", "clustering", "CLUSTERING"],
      ["CODE_RETRIEVAL_QUERY", "search_query", "CODE_RETRIEVAL_QUERY"],
    ];
    for (const [said, cohere, gemini] of words)
      for (const field of ["input_type", "task_type", "task"]) {
        const asked = wire.server!.decodeRequest(
          { model: "m", input: "x", [field]: said },
          "generate",
        );
        expect(sent(cohereEmbeddings(), asked).sent["input_type"]).toBe(cohere);
        const [first] = sent(geminiEmbedding(), asked).sent["requests"] as { taskType: string }[];
        expect(first!.taskType).toBe(gemini);
      }
  });
});

describe("a provider's dialect, on the client's own bytes", () => {
  const prepared = (dialect: EmbeddingDialect, body: Body) => {
    const out = createOutgoing({ model: "m", input: "x", ...body });
    const of = createCallContext({ model: "m" });
    embeddings(dialect).client!.prepare!(out, of);
    const { model: _, input: __, ...sent } = out.body as Record<string, unknown>;
    return { sent, losses: of.losses.map(({ how, field }) => `${how} ${field}`) };
  };
  const voyage: EmbeddingDialect = {
    encodingFormats: ["base64"],
    dimensions: "output_dimension",
    task: { field: "input_type", words: { query: "query", document: "document" } },
    truncate: "truncation",
    tokenIds: false,
    dropFields: ["user"],
  };

  it.each<[string, EmbeddingDialect, Body, object, string[]]>([
    [
      "nothing to say",
      {},
      { encoding_format: "base64", dimensions: 4 },
      { encoding_format: "base64", dimensions: 4 },
      [],
    ],
    ["a form that is an error", voyage, { encoding_format: "float" }, {}, []],
    [
      "a form that is none",
      voyage,
      { encoding_format: "base64" },
      { encoding_format: "base64" },
      [],
    ],
    ["its own name for a width", voyage, { dimensions: 4 }, { output_dimension: 4 }, []],
    ["another's name for a width", {}, { output_dimension: 4 }, { dimensions: 4 }, []],
    [
      "its own word for a task",
      voyage,
      { task_type: "RETRIEVAL_QUERY" },
      { input_type: "query" },
      [],
    ],
    [
      "a task that is near",
      voyage,
      { input_type: "CODE_RETRIEVAL_QUERY" },
      { input_type: "query" },
      ["approximated input_type"],
    ],
    [
      "a task that is unknown there",
      voyage,
      { input_type: "clustering" },
      {},
      ["dropped input_type"],
    ],
    ["a word that is newer than us", voyage, { input_type: "songs" }, { input_type: "songs" }, []],
    ["no task at all", { task: false }, { input_type: "query" }, {}, ["dropped input_type"]],
    ["where it may be cut", voyage, { truncate: "NONE" }, { truncation: false }, []],
    [
      "cut at the other end",
      voyage,
      { truncate: "START" },
      { truncation: true },
      ["approximated truncate"],
    ],
    ["what it does not know", voyage, { user: "u" }, {}, ["dropped user"]],
  ])("%s", (_name, dialect, body, sent, losses) =>
    expect(prepared(dialect, body)).toEqual({ sent, losses }),
  );

  it("rejects unsupported fields before a byte is sent", () => {
    expect(() => prepared(voyage, { input: [1, 2, 3] })).toThrow(/not token IDs/);
    expect(() => prepared({ dimensions: false }, { dimensions: 4 })).toThrow(/one embedding size/);
  });
});

it("request analysis counts token IDs, and inspects no text", () => {
  const survey = (input: Json) => wire.server!.analyze({ model: "m", input });
  expect(survey("a").exactUsage).toBeUndefined();
  expect(survey(["a", "b"]).exactUsage).toBeUndefined();
  expect(survey([1, 2, 3]).exactUsage).toEqual({ input: 3 });
  expect(survey([[1, 2], [3]]).exactUsage).toEqual({ input: 3 });
});

it("an error with status 200 is an error", () => {
  const said = Buffer.from(JSON.stringify({ error: { message: "No such model.", code: 404 } }));
  const events: ModelEvent[] = [];
  expect(() =>
    wire.client!.decodeResponse(said, (e) => events.push(e), createCallContext(), {}),
  ).toThrow("No such model.");
  expect(events).toEqual([]);
});

it("a request with images or URLs next to its text has no token count", () => {
  const media = (more: Body) => analyze({ model: "m", input: [[1, 2, 3]], ...more }).media;
  expect(media({})).toBeUndefined();
  expect(media({ dimensions: 8, user: "u", images: null })).toBeUndefined();
  expect(media({ images: ["https://e.example/a.png"] })).toEqual({ count: 1, bytes: 0 });
  expect(media({ IMAGE: "x", urls: ["https://e.example"] })).toEqual({ count: 2, bytes: 0 });
});
