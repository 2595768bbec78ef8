// An answer and its events are one thing said twice.
import * as fc from "fast-check";
import { expect, it } from "vitest";
import { fold, type ModelAnswer } from "tollgate/plugin";
import { grammar } from "tollgate/testing";
import { unfold } from "../../src/model/unfold.ts";
import { anyAnswers } from "./any-answer.ts";
import { answers } from "./arbitrary.ts";

it("what is unfolded is a right answer, and folds to what it was", () =>
  fc.assert(
    fc.property(fc.oneof(answers(), anyAnswers()), (events) => {
      const answer = fold(events);
      const again = [...unfold(answer)];
      const judge = grammar();
      for (const event of again) judge.event(event);
      judge.end();
      expect(fold(again)).toEqual(answer);
    }),
    { numRuns: 300 },
  ));

it("items are unfolded in their order, and a block that no answer has is refused", () => {
  const finish = { type: "finish", reason: "stop" } as const;
  const items = [{ a: 1 }, { b: 2 }] as unknown as NonNullable<ModelAnswer["items"]>;
  const vectors: ModelAnswer = { id: undefined, blocks: [], items, usage: { input: 1 }, finish };
  expect(fold(unfold(vectors))).toEqual(vectors);
  const result = { type: "result", callId: "c", blocks: [], isError: false } as const;
  expect(() => [...unfold({ blocks: [result], usage: {}, finish })]).toThrow(/result/);
});
