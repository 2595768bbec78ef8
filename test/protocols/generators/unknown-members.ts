// An unknown member, inserted anywhere into a request, and its result.
import {
  getFault,
  type Body,
  type ChatRequest,
  type ClientHalf,
  type Operation,
  type Protocol,
} from "tollgate/plugin";
import { createCallContext, deepFreeze, encodeOutgoing, type ReportedLoss } from "tollgate/testing";

export type Path = readonly (string | number)[];

export const NAME = "x_stranger";

/** Every position of an object in a body, where an additional member is possible. */
export function places(value: unknown, at: Path = []): Path[] {
  if (typeof value !== "object" || value === null) return [];
  const within = Object.entries(value).flatMap(([key, inner]) =>
    places(inner, [...at, Array.isArray(value) ? Number(key) : key]),
  );
  return Array.isArray(value) ? within : [at, ...within];
}

/** The body with the unknown member at that position. */
export function visited(body: object, at: Path, name = NAME): object {
  const copy = structuredClone(body) as any;
  const place = at.reduce((inner, key) => inner[key], copy);
  // Any name may be sent, and an assignment to "__proto__" does not create a member.
  Object.defineProperty(place, name, { value: "here", enumerable: true });
  return copy;
}

/** The outgoing request. "refused" if this protocol cannot express it. */
export function sent(
  { client }: Protocol<"chat">,
  request: ChatRequest,
): { text: string; losses: readonly ReportedLoss[] } | "refused" {
  const of = createCallContext({ model: request.model, stream: request.stream });
  try {
    const { body } = encodeOutgoing(client as ClientHalf<Operation>, request, of);
    return { text: JSON.stringify(body), losses: of.losses };
  } catch (error) {
    if (getFault(error)) return "refused";
    throw error;
  }
}

export const read = ({ server }: Protocol<"chat">, body: object): ChatRequest =>
  server!.decodeRequest(deepFreeze(structuredClone(body)) as Body, "generate") as ChatRequest;

/**
 * Silent losses, with the actual warnings. Undefined if there are none: the member is in the
 * outgoing body, the request is rejected, or a warning names it or its container.
 */
export function silence(
  from: Protocol<"chat">,
  into: Protocol<"chat">,
  body: object,
  at: Path,
  touch: (request: ChatRequest) => ChatRequest = (request) => request,
  name = NAME,
): string | undefined {
  const after = sent(into, touch(read(from, visited(body, at, name))));
  if (after === "refused" || after.text.includes(name)) return undefined;
  if (after.losses.some((loss) => isOf(loss, body, at, name))) return undefined;
  const told = after.losses.map(({ field }) => field).join(", ");
  return `${at.join(".")} into ${into.id}: told ${told || "nothing"}`;
}

/** The member itself, or a container of it: by a member's name, or by an object's type. */
function isOf({ field, code }: ReportedLoss, body: object, at: Path, name: string): boolean {
  const last = field.split(/[.[\]]+/).findLast((word) => word !== "" && !/^\d+$/.test(word));
  if (last === name || at.includes(last!)) return true;
  const around = at.map((_, i) => at.slice(0, i + 1).reduce(into, body as any));
  const types = around.flatMap((place) => place?.type ?? []);
  // A call made by hosted code is part of that code's run.
  const hosted =
    types.some((type) => HOSTED.has(type)) ||
    around.some((place) => place?.caller?.tool_id || place?.executableCode);
  return types.includes(last) || (WHOLE.has(code ?? "") && hosted);
}

const into = (of: any, key: string | number): any => of[key];

/** A hosted tool's run is omitted as a whole, and reported under one name. */
const WHOLE: ReadonlySet<string> = new Set([
  "hosted_history",
  "foreign_content",
  "unknown_content",
]);
const HOSTED: ReadonlySet<unknown> = new Set([
  "server_tool_use",
  "web_search_tool_result",
  "web_search_call",
  "compaction",
]);

/**
 * No warning is needed for a tool's own arguments, and for one field between a client and its
 * vendor.
 */
export const isPrivate = (at: Path): boolean =>
  at.some((key) => SCHEMAS.has(key)) || at[0] === "client_metadata";
const SCHEMAS: ReadonlySet<unknown> = new Set([
  "input_schema",
  "parameters",
  "parametersJsonSchema",
]);

/** As after a hook that edited the whole conversation: its own protocol's text is not reused. */
export const touched = (request: ChatRequest): ChatRequest => ({
  ...request,
  instructions: structuredClone(request.instructions),
  turns: structuredClone(request.turns),
  tools: structuredClone(request.tools),
  toolChoice: structuredClone(request.toolChoice),
  reasoning: structuredClone(request.reasoning),
});
