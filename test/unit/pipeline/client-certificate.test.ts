import fc from "fast-check";
import { expect, it } from "vitest";
import { parseSubjectAltName } from "../../../src/pipeline/exchange/exchange.ts";

/** As Node formats it: content that could be taken for the next name is quoted. */
const written = (kind: string, name: string) =>
  `${kind}:${/[",\\]|[^\x20-\x7e]/.test(name) ? JSON.stringify(name) : name}`;

it("no name of a certificate is lost, and a name with a comma creates no other", () => {
  const name = fc
    .tuple(
      fc.constantFrom("DNS", "URI", "email", "IP Address", "DirName"),
      fc.string({ minLength: 1, maxLength: 20 }).filter((text) => text.trim() === text),
    )
    .map(([kind, text]) => [kind, kind === "URI" ? text : text.toLowerCase()] as const);
  fc.assert(
    fc.property(fc.array(name, { maxLength: 20 }), (names) => {
      const kept = names.filter(([kind]) => kind === "DNS" || kind === "URI" || kind === "email");
      const text = names.map(([kind, each]) => written(kind, each)).join(", ");
      expect(parseSubjectAltName(text)).toEqual(kept.map(([, each]) => each));
    }),
  );
});

it("a name cannot imitate another one", () => {
  expect(parseSubjectAltName('URI:"http://a.test, DNS:batch.example", DNS:b.test')).toEqual([
    "http://a.test, DNS:batch.example",
    "b.test",
  ]);
});
