// While a provider's list is unavailable, the newest list of any gateway on the same store is used,
// in any order of responses.
import fc from "fast-check";
import { expect, it } from "vitest";
import { createInMemoryModelLists, type ModelList } from "../../../src/catalog/model-lists.ts";
import { adoptNewestPeerList } from "../../../src/runtime/services/peer-model-lists.ts";

const whose = { provider: "p", credential: "c" };
const list = (at: number): ModelList => ({
  credential: "c",
  at,
  models: [{ model: `of-${at}`, operation: "chat" }],
});

it("the newest list is used, including the own one, in any order of responses", async () => {
  const moment = fc.integer({ min: 1, max: 1_000 });
  await fc.assert(
    fc.asyncProperty(
      fc.option(moment, { nil: undefined }),
      fc.uniqueArray(moment, { maxLength: 5 }),
      async (own, others) => {
        const lists = createInMemoryModelLists();
        if (own !== undefined) lists.update("p", "c", list(own).models, own);
        const asked: unknown[] = [];
        const all = async (...question: unknown[]) => {
          asked.push(question);
          return others.map(list);
        };
        await adoptNewestPeerList({ modelLists: lists, peerGateways: { askAll: all } }, whose);
        expect(asked).toEqual([["lists", whose]]);
        const moments = own === undefined ? others : [own, ...others];
        expect(lists.of("p")).toEqual(
          moments.length === 0 ? undefined : [list(Math.max(...moments))],
        );
      },
    ),
  );
});

it("a clock that is ahead elsewhere gives no list a future date", async () => {
  const lists = createInMemoryModelLists();
  const ahead = Date.now() + 3_600_000;
  await adoptNewestPeerList(
    { modelLists: lists, peerGateways: { askAll: async () => [list(ahead)] } },
    whose,
  );
  const [{ at, models } = list(ahead)] = lists.of("p")!;
  expect({ models, ahead: at === ahead }).toEqual({ models: list(ahead).models, ahead: false });
});

it("a repeated report is accepted, although nothing changed", async () => {
  const lists = createInMemoryModelLists();
  const heard: (readonly ModelList[] | undefined)[] = [];
  let changes = 0;
  lists.onChange(() => changes++);
  const stop = lists.onRefresh((provider) => heard.push(lists.of(provider)));
  lists.update("p", "c", [{ model: "m", operation: "chat" }], 1);
  lists.update("p", "c", [{ model: "m", operation: "chat" }], 2);
  lists.retainCredentials("p", ["c"]);
  lists.retainCredentials("p", []);
  stop();
  lists.update("p", "c", [{ model: "m", operation: "chat" }], 3);
  expect(changes).toBe(3);
  expect(heard.map((each) => each?.[0]?.at)).toEqual([1, 2, undefined]);
});
