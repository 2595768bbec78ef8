// A client's error without candidates: names that respond, and nothing about the operator.
import * as fc from "fast-check";
import { expect, it } from "vitest";
import { getFault } from "../../../src/model/error.ts";
import { startTestServices } from "../../kit/test-services.ts";
import { createToyProtocol } from "../toy-protocol.ts";
import { trialCount } from "../../kit/law-effort.ts";

const SECRET = "its when: is empty (${env:ACME_PRIVATE_KEY:-})";
const one = (models?: string[]) => ({
  endpoints: [{ protocol: createToyProtocol(), base: "http://127.0.0.1:9" }],
  facts: new Map([
    ["m-large", { operation: "chat" }],
    ["m-small", { operation: "chat" }],
    ["m-draw", { operation: "image" }],
  ]),
  credentials: [{ name: "acct-7731", fields: { api_key: "k" }, weight: 1, models, zdr: undefined }],
});

const candidate = fc.constantFrom("up/m-large", "up/m-draw", "tied/m-small", "off/m-large", "fast");
const asked = fc.constantFrom(
  "fast",
  "fsat",
  "m-large",
  "up/m-lrage",
  "up/m-draw",
  "tied/m-large",
  "tied/m-small",
  "off/m-large",
  "of/m-large",
  "nobody/x",
  "name-1",
  "name-x",
  "m-smal",
  "up/anything",
);

it("names only models that respond, nothing private of the operator, and adds no existing name", async () => {
  let refused = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.dictionary(
        fc.constantFrom("fast", "slow", "m-large", "name-*"),
        fc.array(candidate, { minLength: 1, maxLength: 3 }),
      ),
      fc.array(asked, { minLength: 6, maxLength: 6 }),
      fc.constantFrom(/./, /^up\//, /^(fast|off)/),
      async (models, names, may) => {
        await using s = await startTestServices({
          frontend: createToyProtocol(),
          // A credential that serves none of the listed models.
          providers: { up: one(), tied: one(["else"]) } as never,
          unmounted: { off: SECRET },
          models,
        });
        const { gen, frontends } = s.built;
        const allowed = (name: string) => may.test(name);
        const resolve = (model: string) => {
          try {
            return gen.resolver.resolve(frontends[0]!, model, false, allowed).candidates.length;
          } catch (error) {
            return getFault(error)!;
          }
        };
        for (const model of names) {
          const fault = resolve(model);
          if (typeof fault === "number" || fault.code !== "model_not_found") continue;
          refused++;
          const said = `${model}: ${fault.message}`;
          expect(said).not.toMatch(/\$\{|ACME|when:|acct-7731/);
          const offered = /(?:Similar names|Known names): ([^ ]+(?:, [^ ]+)*)\./.exec(
            fault.message,
          )?.[1];
          for (const name of offered?.split(", ") ?? []) {
            expect(name, said).not.toBe(model);
            expect(allowed(name), said).toBe(true);
            expect(resolve(name), said).toBeGreaterThan(0);
          }
          const added = /add the (name|provider).*"([^":]+)(?::|\/)/.exec(fault.message);
          if (added?.[1] === "name") expect(Object.keys(models), said).not.toContain(added[2]);
          if (added?.[1] === "provider") expect(["up", "tied", "off"]).not.toContain(added[2]);
          // A name in the config is not reported as missing.
          if (Object.hasOwn(models, model) && allowed(model))
            expect(said).not.toContain(`Model ${model} not found`);
        }
      },
    ),
    {
      numRuns: trialCount(60),
      // A name in the config that maps to an unknown name.
      examples: [[{ "m-large": ["fast"] }, Array(6).fill("m-large"), /./]],
    },
  );
  expect(refused).toBeGreaterThan(10);
});

it("a typo in an alias suggests the alias, and an alias without a mounted provider is reported", async () => {
  await using s = await startTestServices({
    frontend: createToyProtocol(),
    providers: { up: one() } as never,
    unmounted: { off: SECRET },
    models: { fast: ["up/m-large"], dark: ["off/m-large"] },
  });
  const said = async (model: string) => {
    const res = await s.ask({ model, text: "x" });
    return `${res.status} ${JSON.stringify(await res.json())}`;
  };
  expect(await said("fsat")).toMatch(/404 .*Model fsat not found\. Similar names: fast\./);
  expect(await said("dark")).toMatch(
    /404 .*No provider serves dark \(off\/m-large: off is not configured\)\./,
  );
  expect(await said("off/m-large")).toMatch(
    /404 .*off is not configured\)\. Similar names: up\/m-large\./,
  );
  expect(await said("nobody/y")).toMatch(/To add the provider, add /);
});

it("only a provider's name followed by a slash and nothing else counts as a provider without a model", async () => {
  await using s = await startTestServices({
    frontend: createToyProtocol(),
    providers: { up: one() } as never,
    models: { fast: ["up/m-large"] },
  });
  const { gen, frontends } = s.built;
  const refusal = (model: string) => {
    try {
      gen.resolver.resolve(frontends[0]!, model, false, () => true);
    } catch (error) {
      return getFault(error)!;
    }
    return expect.unreachable(`${model} is found`);
  };
  expect(refusal("up/")).toMatchObject({
    kind: "invalid",
    code: "invalid_model",
    message: expect.stringContaining("write up/<model>"),
  });
  for (const model of ["up", "nope/", "nope", "fast/"])
    expect(refusal(model).message, model).not.toContain("names a provider");
});
