// Coming in and going out: a word from the shell, or an operator's token, is traded for a session that scripts cannot read.
import { OURS, read } from "./ask.ts";

export interface Self {
  readonly name: string;
  readonly role: string;
  readonly account?: string | null;
  /** Where people sign in, if it is not only here. */
  readonly sign_in?: string;
}

const SESSION = "/admin/v1/session";
const session = (method: string, body?: object): Promise<Response> =>
  fetch(SESSION, {
    method,
    headers: OURS,
    credentials: "same-origin",
    ...(body && { body: JSON.stringify(body) }),
  });

export const whoAmI = (): Promise<Self> => session("GET").then((answer) => read<Self>(answer));
export const comeIn = (by: { word: string } | { token: string }): Promise<Self> =>
  session("POST", by).then((answer) => read<Self>(answer));
export const goOut = (): Promise<unknown> => session("DELETE");

/** What the address brought behind its `#`, once: it leaves the address and the history at once. */
export function wordOfAddress(): string | undefined {
  const word = location.hash.slice(1);
  if (word) history.replaceState(null, "", location.pathname + location.search);
  return /^[\w-]{8,200}$/.test(word) ? word : undefined;
}
