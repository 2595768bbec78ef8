// What a command is given, against its schema: the one place for all commands, the gateway's own and the plugins', and for
// all doors.
import { saidOf } from "../../config/diagnose.ts";
import type { Schema } from "../../config/dialect.ts";
import { valueAt } from "../../config/tree.ts";
import { type ValidationResult, validate } from "../../config/validate.ts";
import { fail } from "../../model/error.ts";
import type { JsonObject } from "../../model/values.ts";
import type { Giver } from "./giver.ts";
import type { ControlCommand } from "./socket.ts";
import { COMMANDS, type CommandName, type InputOf } from "./table.ts";

/** `outside`: whether what stands at a pointer is text that may be meant as a number or a truth value. */
export const checkInput = (
  schema: Schema,
  input: JsonObject,
  outside: (pointer: string) => boolean,
): ValidationResult =>
  validate(schema, input, outside, (pointer) => {
    const value = valueAt(input, pointer);
    return { text: typeof value === "string" ? value : JSON.stringify(value), mayShow: true };
  });

/** With its defaults, or an error that names each member that is wrong and what it should be. */
export function acceptedInput(schema: Schema, input: JsonObject): JsonObject {
  const { value, complaints } = checkInput(schema, input, () => false);
  const [first] = complaints;
  if (!first) return value as JsonObject;
  return fail("invalid", complaints.map(saidOf).join("; "), {
    code: "bad_input",
    param: first.pointer,
  });
}

/** A command's work, as the table types its input. */
type Works<N extends CommandName> = {
  readonly [Name in N]: (input: InputOf<Name>, giver?: Giver, id?: string) => Promise<unknown>;
};

/** Commands of the table, each behind the check of its input. */
export const answering = <N extends CommandName>(works: Works<N>): Record<N, ControlCommand> =>
  Object.fromEntries(
    (Object.keys(works) as N[]).map((name): [string, ControlCommand] => [
      name,
      async (input, giver, id) =>
        works[name](acceptedInput(COMMANDS[name].input, present(input)) as never, giver, id),
    ]),
  ) as Record<N, ControlCommand>;

/** A caller in this process may say undefined where JSON says nothing. */
export const present = (input: JsonObject): JsonObject =>
  Object.fromEntries(Object.entries(input).filter(([, value]) => value !== undefined));
