// Reads the headers that name the members of scopes. Clients choose these values, so they are
// bounded and checked. A client usually repeats its values, so values that were checked are kept:
// equal values need no check, and their texts are the same objects in all requests.
import type { IncomingMessage } from "node:http";
import { BoundedMap } from "../../lib/bounded-map.ts";
import { BOUNDS } from "../../lib/bounds.ts";
import type { ScopeConfig, ScopeSource } from "../../config/gateway-config.ts";
import { failBoundExceeded } from "../../model/bound-exceeded.ts";
import { fail } from "../../model/error.ts";
import type { HeadersIn } from "../../model/values.ts";

/** The checked values of all headers of one request. */
export interface ScopeHeaders {
  /** Values of all sources that are headers, in the order of the config. */
  readonly texts: readonly (string | undefined)[];
  /** The value of each scope by name, if the scope has no other sources with a value. */
  readonly values: ReadonlyMap<string, string>;
}

/** The parts of a request with its headers. */
interface HeaderRequest {
  readonly headers: HeadersIn;
  readonly state: {
    readonly connection: { readonly req: Pick<IncomingMessage, "headersDistinct"> };
  };
}

type HeaderSource = Extract<ScopeSource, { readonly kind: "header" }>;

/** Maximum number of header values whose requests are kept, and of requests for each of them. */
const MAX_KNOWN = 2_048;
const MAX_KNOWN_PER_VALUE = 4;

const HEADER_TEXT = /^[\x20-\x7e]+$/;

export class ScopeHeaderReader {
  readonly #sources: readonly { readonly scope: string; readonly source: HeaderSource }[];
  /** Values that were checked, by the first value. */
  readonly #known = new BoundedMap<string, readonly ScopeHeaders[]>(MAX_KNOWN);
  readonly #none: ScopeHeaders;

  constructor(configs: readonly ScopeConfig[]) {
    this.#sources = configs.flatMap(({ name, from }) =>
      from
        .filter((source): source is HeaderSource => source.kind === "header")
        .map((source) => ({ scope: name, source })),
    );
    this.#none = { texts: this.#sources.map(() => undefined), values: new Map() };
  }

  /** Returns the values of a request. Throws if a header contains an invalid value. */
  read(x: HeaderRequest): ScopeHeaders {
    const { headers } = x;
    let first: unknown;
    for (const { source } of this.#sources) {
      first = headers[source.name];
      if (first !== undefined) break;
    }
    if (first === undefined) return this.#none;
    const known = typeof first === "string" ? this.#known.get(first) : undefined;
    if (known) for (const each of known) if (this.#isSame(each, headers)) return each;
    return this.#readNew(x, known ?? []);
  }

  #isSame({ texts }: ScopeHeaders, headers: HeadersIn): boolean {
    for (let i = 0; i < texts.length; i++)
      if (headers[this.#sources[i]!.source.name] !== texts[i]) return false;
    return true;
  }

  #readNew(x: HeaderRequest, known: readonly ScopeHeaders[]): ScopeHeaders {
    const values = new Map<string, string>();
    const texts = this.#sources.map(({ scope, source }) => {
      const text = readHeader(x, scope, source);
      if (text !== undefined && !values.has(scope)) values.set(scope, text);
      return text;
    });
    const read = { texts, values };
    const first = texts.find((text) => text !== undefined);
    // A value with a comma may be a repeated header, which the text does not show.
    if (first !== undefined && !texts.some((text) => text?.includes(",")))
      this.#known.set(first, [read, ...known.slice(0, MAX_KNOWN_PER_VALUE - 1)]);
    return read;
  }
}

function readHeader(
  x: HeaderRequest,
  scope: string,
  { name, text }: HeaderSource,
): string | undefined {
  const value = x.headers[name];
  if (value === undefined || value === "") return undefined;
  // Node joins the values of a repeated header with commas.
  const isRepeated =
    value.includes(",") && (x.state.connection.req.headersDistinct?.[name]?.length ?? 1) > 1;
  if (typeof value !== "string" || isRepeated)
    return rejectValue(scope, text, name, "it must be sent once");
  if (!HEADER_TEXT.test(value))
    return rejectValue(scope, text, name, "it must consist of printable ASCII characters");
  return checkLength(value, name);
}

export const checkLength = (value: string, param: string): string =>
  value.length <= BOUNDS.scopeValue.max
    ? value
    : failBoundExceeded("scopeValue", undefined, { param });

export const rejectValue = (scope: string, text: string, param: string, why: string): never =>
  fail("invalid", `Invalid value of ${text} for the scope "${scope}": ${why}.`, {
    param,
    code: "invalid_scope_value",
  });
