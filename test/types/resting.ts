// What a plugin reads of a target that rests, and what must not compile.
import type { ErrorKind, CooldownState } from "tollgate/plugin";
import { is, type Same } from "./same.ts";

export function said(rest: CooldownState): string {
  is<Same<typeof rest.reason, ErrorKind>>();
  // @ts-expect-error  a state that there is not
  if (rest.state === "closed") return "";
  // @ts-expect-error  it is read, and nothing ends it but an answer
  rest.until = 0;
  // @ts-expect-error  where all of a credential's models rest, none is named
  void rest.model.length;
  return `${rest.provider} ${rest.state}`;
}
