// While a provider cannot say what it has, what gateways on one store were told last counts: the newest, in whatever order they answer.
import fc from "fast-check";
import { expect, it } from "vitest";
import { createLists, type LiveList } from "../../../src/catalogue/lists.ts";
import { listOfOthers } from "../../../src/gateway/services/others-lists.ts";

const whose = { provider: "p", credential: "c" };
const list = (at: number): LiveList => ({
  credential: "c",
  at,
  models: [{ model: `of-${at}`, kind: "chat" }],
});

it("the newest list counts, the own one too, in whatever order others answer", async () => {
  const moment = fc.integer({ min: 1, max: 1_000 });
  await fc.assert(
    fc.asyncProperty(
      fc.option(moment, { nil: undefined }),
      fc.uniqueArray(moment, { maxLength: 5 }),
      async (own, others) => {
        const lists = createLists();
        if (own !== undefined) lists.replace("p", "c", list(own).models, own);
        const asked: unknown[] = [];
        const all = async (...question: unknown[]) => {
          asked.push(question);
          return others.map(list);
        };
        await listOfOthers({ lists, elsewhere: { all } }, whose);
        expect(asked).toEqual([["lists", whose]]);
        const moments = own === undefined ? others : [own, ...others];
        expect(lists.of("p")).toEqual(
          moments.length === 0 ? undefined : [list(Math.max(...moments))],
        );
      },
    ),
  );
});

it("a clock that is ahead elsewhere makes no list one of tomorrow here", async () => {
  const lists = createLists();
  const ahead = Date.now() + 3_600_000;
  await listOfOthers({ lists, elsewhere: { all: async () => [list(ahead)] } }, whose);
  const [{ at, models } = list(ahead)] = lists.of("p")!;
  expect({ models, ahead: at === ahead }).toEqual({ models: list(ahead).models, ahead: false });
});

it("what was told once more is heard, though nothing has changed", async () => {
  const lists = createLists();
  const heard: (readonly LiveList[] | undefined)[] = [];
  let changes = 0;
  lists.onChange(() => changes++);
  const stop = lists.onHeard((provider) => heard.push(lists.of(provider)));
  lists.replace("p", "c", [{ model: "m", kind: "chat" }], 1);
  lists.replace("p", "c", [{ model: "m", kind: "chat" }], 2);
  lists.keep("p", ["c"]);
  lists.keep("p", []);
  stop();
  lists.replace("p", "c", [{ model: "m", kind: "chat" }], 3);
  expect(changes).toBe(3);
  expect(heard.map((each) => each?.[0]?.at)).toEqual([1, 2, undefined]);
});
