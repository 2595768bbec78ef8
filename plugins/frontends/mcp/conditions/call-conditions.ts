// Conditions for the arguments of calls, as JSON Schemas.
import { Ajv, type ValidateFunction } from "ajv";
import { matchesGlob, type Identity, type JsonObject, type Opt } from "tollgate/plugin";

/** A condition of the options. */
export interface ConditionOptions {
  readonly tools: readonly string[];
  readonly keys?: Opt<readonly string[]>;
  readonly accounts?: Opt<readonly string[]>;
  readonly arguments: Readonly<Record<string, unknown>>;
}

export class CallConditions {
  readonly #conditions: readonly (ConditionOptions & { readonly validate: ValidateFunction })[];

  /** Throws if a schema is not valid. */
  constructor(options: readonly ConditionOptions[]) {
    const ajv = new Ajv({ strict: false, validateFormats: false });
    this.#conditions = options.map((condition) => ({
      ...condition,
      validate: ajv.compile(condition.arguments),
    }));
  }

  /** Returns the place of the first argument that a condition rejects, or undefined. */
  findViolation(tool: string, values: JsonObject, identity: Identity): string | undefined {
    for (const { tools, keys, accounts, validate } of this.#conditions) {
      if (!tools.some((pattern) => matchesGlob(pattern, tool))) continue;
      if (keys && !keys.includes(identity.id)) continue;
      if (accounts && !isCharged(identity, accounts)) continue;
      if (validate(values)) continue;
      const { instancePath = "", message = "is not allowed" } = validate.errors?.[0] ?? {};
      return `${instancePath === "" ? "The arguments" : instancePath} ${message}`;
    }
    return undefined;
  }
}

/** Whether a client is charged to one of these accounts or to an account under it. */
const isCharged = ({ account, accountPath }: Identity, accounts: readonly string[]): boolean =>
  (accountPath ?? [account ?? ""]).some((id) => accounts.includes(id));
