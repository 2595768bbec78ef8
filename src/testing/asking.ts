import type { Asking, Answering, Losing } from "../plugin/protocol.ts";

export interface Loss {
  readonly field: string;
  readonly how: "dropped" | "approximated";
  readonly code: string | undefined;
}

export interface Lost {
  readonly losses: readonly Loss[];
}

/** `strict`: a loss throws, as under the host's strict mode. The list stays open when the rest is frozen. */
function losing<T extends object>(told: T, strict: boolean): T & Losing & Lost {
  const losses: Loss[] = [];
  const lose: Losing["lose"] = (field, how, code) => {
    losses.push({ field, how, code });
    if (strict) throw new Error(`${field} would be ${how}.`);
  };
  const get = () => losses;
  return Object.defineProperty({ lose, ...told }, "losses", { get }) as T & Losing & Lost;
}

/** What a client half is told of a call, for those who run one without a host. It notes what is declared lost. */
export function asking(of: Partial<Asking> = {}, strict = false): Asking & Lost {
  const model = of.model ?? "model";
  const told: Omit<Asking, "lose"> = {
    op: "generate",
    name: "generate",
    model,
    info: { model, kind: "chat" },
    stream: false,
    params: {},
    query: new URLSearchParams(),
    ...of,
  };
  return losing(told, strict);
}

/** What a server half is told of the answer it writes. */
export function answering(to: Partial<Answering> = {}, strict = false): Answering & Lost {
  const told: Omit<Answering, "lose"> = {
    id: "x1",
    model: "provider/model",
    created: 1795000000,
    stream: false,
    body: {},
    query: new URLSearchParams(),
    ...to,
  };
  return losing(told, strict);
}
