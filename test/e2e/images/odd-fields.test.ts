// Fields with the names of language features: a client's field is ordinary data under any name, and
// causes no internal error.
import { afterAll, beforeAll, expect, it } from "vitest";
import { HOSTS, KEYS, studio, type Studio } from "./studio.ts";

let s: Studio;
beforeAll(async () => {
  s = await studio();
});
afterAll(() => s[Symbol.asyncDispose]());

const NAMES = ["then", "catch", "toJSON", "constructor", "hasOwnProperty", "__proto__", "length"];
const VALUES = ["-1", "null", '"then"', '{"n":8}', "[[]]"];

it.each(HOSTS.map(({ model }) => model))("to %s", async (model) => {
  for (const name of NAMES)
    for (const value of VALUES) {
      const answer = await fetch(`${s.gateway.url}/v1/images/generations`, {
        method: "POST",
        headers: { authorization: `Bearer ${KEYS.alice}`, "content-type": "application/json" },
        body: `{"${name}":${value},"model":"${model}","prompt":"A harbour"}`,
      });
      expect([200, 400], `${name}: ${value}: ${await answer.text()}`).toContain(answer.status);
    }
});
