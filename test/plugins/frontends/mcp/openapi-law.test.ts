// For every document, the request that leaves the gateway is the one that the document describes. The request is read back here by
// the rules of the standard, without the code that wrote it.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { OpenApiDocument } from "../../../../plugins/frontends/mcp/openapi/document.ts";
import { buildRequest } from "../../../../plugins/frontends/mcp/openapi/request.ts";
import { createOperationTools } from "../../../../plugins/frontends/mcp/openapi/tools.ts";

type Value = string | readonly string[] | Readonly<Record<string, string>>;
type Place = "path" | "query" | "header" | "cookie";

const name = fc.stringMatching(/^[a-z][a-z0-9]{0,7}$/);
const text = fc
  .string({ minLength: 1, maxLength: 12, unit: "grapheme" })
  .filter((s) => s.isWellFormed() && !/^\.{1,2}$/.test(s));
/** Texts in headers are not encoded, so they contain no separators. */
const plain = fc.stringMatching(/^[a-zA-Z0-9_~-]{1,8}$/);
const value = (of: fc.Arbitrary<string>): fc.Arbitrary<Value> =>
  fc.oneof(
    of,
    fc.array(of, { minLength: 1, maxLength: 4 }),
    fc
      .uniqueArray(fc.tuple(name, of), { minLength: 1, maxLength: 4, selector: ([key]) => key })
      .map((pairs) => Object.fromEntries(pairs)),
  );

const STYLES: Record<Place, readonly string[]> = {
  path: ["simple", "label", "matrix"],
  query: ["form", "deepObject", "spaceDelimited", "pipeDelimited"],
  header: ["simple"],
  cookie: ["form"],
};
const parameter = fc
  .constantFrom<Place>("path", "query", "header", "cookie")
  .chain((place) =>
    fc.record({
      place: fc.constant(place),
      style: fc.constantFrom(...STYLES[place]),
      explode: fc.boolean(),
      value: value(place === "header" ? plain : text),
      json: fc.boolean(),
    }),
  )
  .map((each) => {
    const json = each.json && each.place !== "header";
    const scalar = typeof each.value === "string" || Array.isArray(each.value);
    // Each style is defined for some types only.
    if (each.style === "deepObject")
      return {
        ...each,
        json: false,
        explode: true,
        value: scalar ? { a: [each.value].flat()[0] as string } : each.value,
      };
    if (/Delimited/.test(each.style))
      return {
        ...each,
        json: false,
        explode: false,
        value: withoutDelimiters(typeof each.value === "string" ? [each.value] : each.value),
      };
    return { ...each, json };
  });

/** These styles cannot express values that contain their delimiter. */
function withoutDelimiters(of: Value): Value {
  return JSON.parse(JSON.stringify(of).replaceAll(/[ |]/g, "_")) as Value;
}

/** Reads a value back. `raw` is the encoded text, for places with a name without it. */
function readBack(
  raw: string,
  like: Value,
  { style, explode }: { style: string; explode: boolean },
  own: string,
): Value {
  const decode = decodeURIComponent;
  const pairs = (items: readonly string[]) =>
    Object.fromEntries(items.map((item) => item.split("=").map(decode)));
  const flat = (items: readonly string[]) =>
    Object.fromEntries(
      Array.from({ length: items.length / 2 }, (_, i) => [
        decode(items[2 * i]!),
        decode(items[2 * i + 1]!),
      ]),
    );
  const isList = Array.isArray(like);
  if (style === "label") {
    const items = raw.slice(1).split(explode ? "." : ",");
    return typeof like === "string"
      ? decode(raw.slice(1))
      : isList
        ? items.map(decode)
        : explode
          ? pairs(items)
          : flat(items);
  }
  if (style === "matrix") {
    const items = raw.slice(1).split(";");
    if (typeof like !== "string" && explode)
      return isList ? items.map((item) => decode(item.slice(own.length + 1))) : pairs(items);
    const rest = items[0]!.slice(own.length + 1);
    return typeof like === "string"
      ? decode(rest)
      : isList
        ? rest.split(",").map(decode)
        : flat(rest.split(","));
  }
  const items = raw.split(",");
  return typeof like === "string"
    ? decode(raw)
    : isList
      ? items.map(decode)
      : explode
        ? pairs(items)
        : flat(items);
}

function readQuery(
  query: string,
  separator: string,
  like: Value,
  of: { style: string; explode: boolean },
  own: string,
): Value {
  const items = query.split(separator).map((item) => item.split("=") as [string, string]);
  const mine = items.filter(([key]) => key === own).map(([, each]) => each);
  if (of.style === "deepObject")
    return Object.fromEntries(
      items
        .map(([key, each]) => [/^[^%]+%5B(.*)%5D$/.exec(key)?.[1], each] as const)
        .filter(([key]) => key !== undefined)
        .map(([key, each]) => [decodeURIComponent(key!), decodeURIComponent(each)]),
    );
  const delimiter = { spaceDelimited: "%20", pipeDelimited: "%7C" }[of.style];
  if (delimiter !== undefined)
    return readBack(
      mine[0]!.replaceAll(delimiter, ","),
      like,
      { style: "simple", explode: false },
      own,
    );
  if (typeof like === "string") return decodeURIComponent(mine[0]!);
  if (!of.explode) return readBack(mine[0]!, like, { style: "simple", explode: false }, own);
  return Array.isArray(like)
    ? mine.map(decodeURIComponent)
    : Object.fromEntries(items.map((item) => item.map(decodeURIComponent)));
}

describe("the request of an operation", () => {
  it("contains each argument as the document describes it", () => {
    fc.assert(
      fc.property(
        parameter,
        fc.constantFrom("get", "post", "put", "patch", "delete"),
        fc.option(fc.jsonValue(), { nil: undefined }),
        fc.constantFrom(
          "https://api.example.com",
          "https://api.example.com:8443/v2",
          "https://api.example.com/a%20b/",
        ),
        (given, method, body, base) => {
          const { place, style, explode, json } = given;
          const own = "own";
          const path = place === "path" ? "/things/{own}/parts" : "/things";
          const schema = { type: "string" };
          const described = {
            name: own,
            in: place,
            required: true,
            style,
            explode,
            ...(json ? { content: { "application/json": { schema } } } : { schema }),
          };
          const hasBody = body !== undefined && body !== null;
          const document = new OpenApiDocument(
            "api.json",
            JSON.stringify({
              openapi: "3.1.0",
              paths: {
                [path]: {
                  parameters: [described],
                  [method]: {
                    operationId: "act",
                    ...(hasBody && {
                      requestBody: { content: { "application/json": { schema: {} } } },
                    }),
                  },
                },
              },
            }),
          );
          const [tool] = createOperationTools(document, {}, () => undefined);
          const sent = buildRequest(tool!.request, base, {
            own: given.value as never,
            ...(hasBody && { body: body as never }),
          });

          expect(sent.method).toBe(method.toUpperCase());
          expect(sent.body).toBe(hasBody ? JSON.stringify(body) : undefined);
          expect(sent.headers["content-type"]).toBe(hasBody ? "application/json" : undefined);
          const url = new URL(sent.url);
          // The URL is sent as it was written, and stays under the base URL.
          expect(url.href).toBe(sent.url);
          expect(sent.url.startsWith(base.replace(/\/$/, ""))).toBe(true);
          const prefix = new URL(base).pathname.replace(/\/$/, "");
          const raw = {
            path: url.pathname.slice(`${prefix}/things/`.length).replace(/\/parts$/, ""),
            query: url.search.slice(1),
            header: sent.headers[own] ?? "",
            cookie: sent.headers["cookie"] ?? "",
          }[place];
          if (place !== "path") expect(url.pathname).toBe(`${prefix}/things`);
          const separator = place === "cookie" ? "; " : "&";
          const like = json ? "" : given.value;
          const read =
            place === "path" || place === "header"
              ? readBack(raw, like, json ? { style, explode: false } : given, own)
              : readQuery(raw, separator, like, given, own);
          expect(json ? JSON.parse(read as string) : read).toEqual(given.value);
        },
      ),
      { numRuns: 1_000 },
    );
  });
});
