// A ranking is sorted, names each document once, and has the requested length, for any upstream
// response in either mode.
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { getFault, type Body } from "tollgate/plugin";
import { rerank, voyageRerank } from "tollgate/protocols/rerank";
import { createResponseContext, createCallContext, decodeWhole, runRelay } from "tollgate/testing";
import { encodeWhole } from "../../../src/testing/codec.ts";

const wire = rerank();
const texts = (n: number) => Array.from({ length: n }, (_, i) => `text ${i}`);
const body = (documents: number, more: object = {}): Body => ({
  model: "p/m",
  query: "q",
  documents: texts(documents),
  ...more,
});
const said = (rows: readonly object[]) =>
  Buffer.from(JSON.stringify({ id: "x", results: rows, usage: { total_tokens: 3 } }));

/** In both modes: the client's view. */
const read = (from: Buffer, asked: Body): any[] => {
  const to = createResponseContext({ body: asked });
  return [
    runRelay(wire.client!, [from], to).bytes,
    encodeWhole(wire.server!, decodeWhole(wire.client!, from, createCallContext()), to),
  ].map((bytes) => JSON.parse(bytes.toString()));
};

const scores = fc.array(fc.integer({ min: 0, max: 5 }), { minLength: 1, maxLength: 12 });

describe("a ranking", () => {
  it("is sorted by score, with equal scores in order, and limited to the requested number", () => {
    fc.assert(
      fc.property(
        scores,
        fc.option(fc.integer({ min: 1, max: 15 })),
        fc.boolean(),
        (all, most, back) => {
          const rows = all.map((score, index) => ({ index, relevance_score: score }));
          const asked = body(all.length, {
            ...(most !== null && { top_n: most }),
            ...(back && { return_documents: true }),
          });
          const due = rows
            .toSorted((a, b) => b.relevance_score - a.relevance_score || a.index - b.index)
            .slice(0, most ?? rows.length)
            .map((row) => (back ? { ...row, document: { text: `text ${row.index}` } } : row));
          for (const answer of read(said(rows), asked)) expect(answer.results).toEqual(due);
        },
      ),
    );
  });

  it("with an unknown, duplicate, or missing document is invalid", () => {
    const fails = (rows: readonly object[], asked: Body) =>
      [
        () => runRelay(wire.client!, [said(rows)], createResponseContext({ body: asked })),
        () =>
          encodeWhole(
            wire.server!,
            decodeWhole(wire.client!, said(rows), createCallContext()),
            createResponseContext({ body: asked }),
          ),
      ].map((run) => {
        try {
          run();
          return undefined;
        } catch (error) {
          return getFault(error)?.code;
        }
      });
    const row = (index: number) => ({ index, relevance_score: 1 });
    for (const rows of [[row(2)], [row(-1)], [row(0.5)], [row(0), row(0)], [row(0)]])
      expect(fails(rows, body(2))).toEqual(["bad_ranking", "bad_ranking"]);
    for (const rows of [[{ index: 0 }], [{ relevance_score: 1 }], [null as never]])
      expect(fails(rows, body(1))).toEqual(["bad_answer", "bad_answer"]);
    expect(fails([row(1)], body(2, { top_n: 1 }))).toEqual([undefined, undefined]);
  });
});

it("has the format of Voyage's clients", () => {
  const { server } = voyageRerank();
  const from = said([{ index: 1, relevance_score: 0.5 }]);
  const to = createResponseContext({ body: body(2, { top_k: 1, return_documents: true }) });
  const answer = JSON.parse(
    encodeWhole(server!, decodeWhole(wire.client!, from, createCallContext()), to).toString(),
  );
  expect(answer).toEqual({
    object: "list",
    data: [{ index: 1, relevance_score: 0.5, document: "text 1" }],
    model: "provider/model",
    usage: { total_tokens: 3 },
  });
});

it("is requested from Voyage as texts, with its field names", () => {
  const asked = wire.server!.decodeRequest(
    { model: "m", query: "q", documents: ["a", { text: "b" }], top_n: 1, max_tokens_per_doc: 9 },
    "generate",
  );
  const of = createCallContext({ model: "rerank-2.5" });
  expect(voyageRerank().client!.encodeRequest(asked, of)).toEqual({
    model: "rerank-2.5",
    query: "q",
    documents: ["a", "b"],
    top_k: 1,
  });
  expect(of.losses.map(({ field }) => field)).toEqual(["max_tokens_per_doc"]);
});

it("counts a search for each started hundred documents", () => {
  for (const [documents, searches] of [
    [1, 1],
    [100, 1],
    [101, 2],
    [1_000, 10],
  ] as const)
    expect(wire.server!.analyze(body(documents)).exactUsage).toEqual({ searches });
});
