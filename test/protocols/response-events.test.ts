// A response and its events have the same content.
import * as fc from "fast-check";
import { expect, it } from "vitest";
import { collectResponse, type ModelResponse } from "tollgate/plugin";
import { createEventGrammar } from "tollgate/testing";
import { responseToEvents } from "../../src/model/response-collector.ts";
import { anyAnswers } from "./generators/any-answer.ts";
import { answers } from "./generators/arbitrary.ts";
import { trialCount } from "../kit/law-effort.ts";

it("expanding a response gives a valid response that collapses to the original", () =>
  fc.assert(
    fc.property(fc.oneof(answers(), anyAnswers()), (events) => {
      const answer = collectResponse(events);
      const again = [...responseToEvents(answer)];
      const judge = createEventGrammar();
      for (const event of again) judge.event(event);
      judge.end();
      expect(collectResponse(again)).toEqual(answer);
    }),
    { numRuns: trialCount(300) },
  ));

it("items are expanded in their order, and a block that no response has is rejected", () => {
  const finish = { type: "finish", reason: "stop" } as const;
  const items = [{ a: 1 }, { b: 2 }] as unknown as NonNullable<ModelResponse["items"]>;
  const vectors: ModelResponse = { id: undefined, blocks: [], items, usage: { input: 1 }, finish };
  expect(collectResponse(responseToEvents(vectors))).toEqual(vectors);
  const result = { type: "result", callId: "c", blocks: [], isError: false } as const;
  expect(() => [...responseToEvents({ blocks: [result], usage: {}, finish })]).toThrow(/result/);
});
