// Validates the input of every command against its schema, for the gateway's and the plugins'
// commands and for all interfaces.
import { toSentence } from "../../config/schema/schema-errors.ts";
import type { Schema } from "../../config/schema-dialect.ts";
import { valueAt } from "../../config/source/config-tree.ts";
import { type ValidationResult, validateValue } from "../../config/schema/validate-value.ts";
import { fail } from "../../model/error.ts";
import type { JsonObject } from "../../model/values.ts";
import type { CommandPrincipal } from "../../runtime/access/principal.ts";
import type { CommandHandler } from "../socket/control-socket.ts";
import { COMMAND_SPECS, type CommandName, type InputOf } from "../schema/command-specs.ts";

/**
 * Validates an input.
 * @param outside Whether the value at a pointer is text that may represent a number or a boolean.
 */
export const checkInput = (
  schema: Schema,
  input: JsonObject,
  outside: (pointer: string) => boolean,
): ValidationResult =>
  validateValue(schema, input, outside, (pointer) => {
    const value = valueAt(input, pointer);
    return { text: typeof value === "string" ? value : JSON.stringify(value), mayShow: true };
  });

/**
 * Returns the input with its defaults. Throws an error that names each invalid member and the
 * expected value.
 */
export function validateInput(schema: Schema, input: JsonObject): JsonObject {
  const { value, errors } = checkInput(schema, input, () => false);
  const [first] = errors;
  if (!first) return value as JsonObject;
  return fail("invalid", errors.map(toSentence).join("; "), {
    code: "bad_input",
    param: first.pointer,
  });
}

/** Command handlers with the input types of the command table. */
type CommandHandlers<N extends CommandName> = {
  readonly [Name in N]: (
    input: InputOf<Name>,
    giver?: CommandPrincipal,
    id?: string,
  ) => Promise<unknown>;
};

/** Wraps each handler with the validation of its input. */
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

/**
 * Removes undefined members, which callers in this process may pass and which JSON does not have.
 */
export const omitUndefined = (input: JsonObject): JsonObject =>
  Object.fromEntries(Object.entries(input).filter(([, value]) => value !== undefined));
