// Generates the tables of docs/reference/translation from the codecs: the result of each field in each protocol.
import {
  getFault,
  type Block,
  type Body,
  type CallContext,
  type ChatRequest,
  type ClientHalf,
  type JsonObject,
  type Operation,
  type ModelRequest,
  type Protocol,
} from "tollgate/plugin";
import { createCallContext, encodeOutgoing } from "tollgate/testing";
import { upstreams } from "../generators/codecs.ts";
import { createChatRequest } from "../../kit/requests.ts";

/** A row: its name, a request with its field, and the request that it is compared with. */
export type Row<T> = readonly [name: string, more: T, plain?: T];

/** Name of the requested route. */
type Route = Partial<Pick<CallContext, "action">>;

interface Sent {
  text: string;
  losses: readonly { how: string; code: string | undefined; field: string }[];
}

/** Codecs of one kind, by the name of their column. */
export interface Wires {
  readonly [name: string]: Protocol<any>;
}

function sent(
  wire: Protocol<any>,
  request: ModelRequest,
  route: Route,
): Sent | { refused: string } {
  const of = createCallContext({ model: "m", ...route });
  try {
    const { body } = encodeOutgoing(wire.client as ClientHalf<Operation>, request, of);
    return { text: JSON.stringify(body), losses: of.losses };
  } catch (error) {
    const fault = getFault(error);
    if (!fault) throw error;
    return { refused: fault.code ?? fault.kind };
  }
}

/**
 * As one word, with the code if there is one: the difference from the same request without the
 * field.
 */
function verdict(
  wire: Protocol<any>,
  request: ModelRequest,
  plain: ModelRequest,
  route: Route,
): string {
  const now = sent(wire, request, route);
  if ("refused" in now) return `rejected (${now.refused})`;
  const before = sent(wire, plain, route);
  if ("refused" in before) throw new Error(`without it, ${wire.id} refuses: ${before.refused}`);
  const lost = now.losses.filter(
    (l) => !before.losses.some((b) => b.field === l.field && b.code === l.code),
  );
  const words = lost.map(({ how, code }) =>
    code === undefined || code === how ? how : `${how} (${code})`,
  );
  if (words.length > 0) return [...new Set(words)].join(", ");
  return now.text === before.text ? "omitted" : "forwarded";
}

const line = (cells: readonly string[]) => `| ${cells.join(" | ")} |`;

export function table(
  wires: Wires,
  rows: readonly { name: string; request: ModelRequest; plain: ModelRequest }[],
  route: Route = {},
): string {
  const targets = Object.keys(wires);
  return [
    line(["Field", ...targets]),
    line(["---", ...targets.map(() => "---")]),
    ...rows.map(({ name, request, plain }) =>
      line([name, ...targets.map((t) => verdict(wires[t]!, request, plain, route))]),
    ),
  ].join("\n");
}

/** As after a hook that edited the whole conversation: its own protocol's text is not reused. */
const anew = (r: ChatRequest): ChatRequest => ({
  ...r,
  instructions: structuredClone(r.instructions),
  turns: structuredClone(r.turns),
  tools: structuredClone(r.tools),
});

/** Rows in a client's form of `protocol`, on a minimal body. */
export function fromClients(protocol: string, least: object, rows: readonly Row<object>[]): string {
  const { server } = upstreams[protocol]!;
  const read = (more: object) =>
    anew(
      server!.decodeRequest({ ...least, ...more } as JsonObject as Body, "generate") as ChatRequest,
    );
  return table(
    upstreams,
    rows.map(([name, more, plain = {}]) => ({ name, request: read(more), plain: read(plain) })),
  );
}

/** Rows in the common form of any protocol. */
export const fromAny = (rows: readonly Row<Partial<ChatRequest>>[]): string =>
  table(
    upstreams,
    rows.map(([name, more, plain]) => ({
      name,
      request: asked(more),
      plain: plain ? asked(plain) : neutral(more),
    })),
  );

export const asked = (more: Partial<ChatRequest> = {}): ChatRequest =>
  createChatRequest({
    turns: [{ role: "user", blocks: [{ type: "text", text: "?" }] }],
    output: { maxTokens: 4000 },
    ...more,
  });

/**
 * The same request without the content in question: marks removed from the texts, and other blocks
 * omitted.
 */
const neutral = (more: Partial<ChatRequest>): ChatRequest =>
  asked(
    more.turns && {
      turns: more.turns.map((t) => ({
        role: t.role === "system" ? ("user" as const) : t.role,
        blocks: t.blocks.flatMap((b): Block[] => {
          if (b.type === "text") return [{ type: "text", text: b.text }];
          if (b.type === "result") return [{ ...b, blocks: [] }];
          return b.type === "call" ? [b] : [];
        }),
      })),
    },
  );
