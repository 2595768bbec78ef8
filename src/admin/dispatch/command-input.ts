// What a command is given, against its schema: the one place for all commands, the gateway's own and the plugins', and for
// all doors.
import { toSentence } from "../../config/schema/schema-errors.ts";
import type { Schema } from "../../config/schema-dialect.ts";
import { valueAt } from "../../config/source/config-tree.ts";
import { type ValidationResult, validateValue } from "../../config/schema/validate-value.ts";
import { fail } from "../../model/error.ts";
import type { JsonObject } from "../../model/values.ts";
import type { CommandPrincipal } from "../../runtime/access/principal.ts";
import type { CommandHandler } from "../socket/control-socket.ts";
import { COMMAND_SPECS, type CommandName, type InputOf } from "../schema/command-specs.ts";

/** `outside`: whether what stands at a pointer is text that may be meant as a number or a truth value. */
export const checkInput = (
  schema: Schema,
  input: JsonObject,
  outside: (pointer: string) => boolean,
): ValidationResult =>
  validateValue(schema, input, outside, (pointer) => {
    const value = valueAt(input, pointer);
    return { text: typeof value === "string" ? value : JSON.stringify(value), mayShow: true };
  });

/** With its defaults, or an error that names each member that is wrong and what it should be. */
export function validateInput(schema: Schema, input: JsonObject): JsonObject {
  const { value, errors } = checkInput(schema, input, () => false);
  const [first] = errors;
  if (!first) return value as JsonObject;
  return fail("invalid", errors.map(toSentence).join("; "), {
    code: "bad_input",
    param: first.pointer,
  });
}

/** A command's work, as the table types its input. */
type CommandHandlers<N extends CommandName> = {
  readonly [Name in N]: (
    input: InputOf<Name>,
    giver?: CommandPrincipal,
    id?: string,
  ) => Promise<unknown>;
};

/** Commands of the table, each behind the check of its input. */
export const withInputChecks = <N extends CommandName>(
  works: CommandHandlers<N>,
): Record<N, CommandHandler> =>
  Object.fromEntries(
    (Object.keys(works) as N[]).map((name): [string, CommandHandler] => [
      name,
      async (input, giver, id) =>
        works[name](
          validateInput(COMMAND_SPECS[name].input, omitUndefined(input)) as never,
          giver,
          id,
        ),
    ]),
  ) as Record<N, CommandHandler>;

/** A caller in this process may say undefined where JSON says nothing. */
export const omitUndefined = (input: JsonObject): JsonObject =>
  Object.fromEntries(Object.entries(input).filter(([, value]) => value !== undefined));
