// Form fields that keys and accounts have in common: name, limits, models, privacy, and labels.
import { html } from "htm/preact";
import type { CommandError } from "../../admin-client.ts";
import { type AccountConfig, limitError, splitLimits } from "../../account-text.ts";
import { Select, TextField } from "../../parts/fields.ts";
import { ErrorNote, type Tone } from "../../parts/basics.ts";
import { LimitField, type UsedLimit } from "../../limits.ts";

export interface GrantsForm {
  readonly name: string;
  readonly models: string;
  readonly privacy: string;
  readonly labels: string;
  readonly limits: string;
}

interface GrantFields {
  readonly name?: string;
  readonly models?: readonly string[];
  readonly privacy?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly limits?: readonly string[];
}

export const toForm = ({ name, models, privacy, labels, limits }: GrantFields): GrantsForm => ({
  name: name ?? "",
  models: models?.join(", ") ?? "",
  privacy: privacy ?? "",
  labels: Object.entries(labels ?? {})
    .map(([label, word]) => `${label}=${word}`)
    .join(", "),
  limits: (limits ?? []).join(", "),
});

const splitList = (text: string): string[] => text.split(/[,\s]+/).filter(Boolean);

/** Returns why the form cannot be submitted, or undefined if it is valid. */
export const formError = ({ limits, labels }: GrantsForm): string | undefined =>
  limitError(limits) ??
  (labels.split(",").some((each) => each.trim() !== "" && !/^[^=]+=.+$/.test(each.trim()))
    ? "Enter labels as name=value, for example team=web."
    : undefined);

/**
 * Converts the form to a command's input. `none` represents an empty field: undefined when a record
 * is created, null when it is updated.
 */
export function fromForm<N extends null | undefined>(of: GrantsForm, none: N) {
  const labels = Object.fromEntries(
    of.labels.split(",").flatMap((each) => {
      const at = each.indexOf("=");
      return at > 0 ? [[each.slice(0, at).trim(), each.slice(at + 1).trim()]] : [];
    }),
  );
  const models = splitList(of.models);
  const limits = splitLimits(of.limits);
  return {
    name: of.name.trim() || none,
    models: models.length > 0 ? models : none,
    privacy: of.privacy || none,
    labels: Object.keys(labels).length > 0 ? labels : none,
    limits: limits.length > 0 ? limits : none,
  };
}

export function GrantsFields({ value, set }: { value: GrantsForm; set: (to: GrantsForm) => void }) {
  const put = (more: Partial<GrantsForm>) => set({ ...value, ...more });
  return html` <${TextField}
      name="Name"
      value=${value.name}
      set=${(name: string) => put({ name })}
      placeholder="laptop of Anna"
    />
    <${LimitField} value=${value.limits} set=${(limits: string) => put({ limits })} />
    <${TextField}
      name="Models"
      value=${value.models}
      set=${(models: string) => put({ models })}
      placeholder="openai/*, fast"
      hint="Names or patterns. * matches any text. Leave empty for all models."
    />
    <div class="filters">
      <${Select}
        name="Privacy"
        value=${value.privacy}
        set=${(privacy: string) => put({ privacy })}
        options=${[
          ["", "as each request asks"],
          ["required", "Service-ZDR: required"],
          ["strict", "Service-ZDR: strict"],
        ]}
      />
      <${TextField}
        name="Labels"
        wide=${true}
        value=${value.labels}
        set=${(labels: string) => put({ labels })}
        placeholder="team=web, cost=4711"
      />
    </div>`;
}

/**
 * Footer of the form: the error, and buttons to submit and cancel. `does` is the label of the
 * submit button.
 */
export const FormFooter = ({
  flaw,
  problem,
  close,
  off,
  does,
}: {
  flaw: string | undefined;
  problem: CommandError | undefined;
  close: () => void;
  off: boolean;
  does: string;
}) =>
  html`${flaw && html`<p class="bad" role="alert">${flaw}</p>`}
    ${problem && html`<${ErrorNote} problem=${problem} />`}
    <footer>
      <button type="button" class="button" onClick=${close}>Cancel</button
      ><button type="submit" class="button main" disabled=${off}>${does}</button>
    </footer>`;

/** Returns the account with the form's values. Properties without a form field are unchanged. */
export const withFormValues = (
  { id, frontends, discloseLimits }: Account,
  typed: GrantsForm,
  parent: string,
  defaults: AccountConfig["defaults"],
): AccountConfig => ({
  ...(fromForm(typed, undefined) as Omit<AccountConfig, "id">),
  id,
  parent: parent || undefined,
  defaults,
  frontends,
  discloseLimits,
});

// Keys and accounts: the parts of command responses that the pages use.

export interface Key {
  readonly id: string;
  readonly name?: string;
  readonly state: "valid" | "expired" | "revoked";
  readonly account?: string;
  readonly models?: readonly string[];
  readonly frontends?: readonly string[];
  readonly privacy?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly limits?: readonly string[];
  readonly limitUsage?: readonly UsedLimit[];
  readonly created: number;
  readonly expires?: number;
  readonly version?: number;
  /** Set for an admin's key, which can run commands but cannot call models. */
  readonly admin?: string;
}

export interface Account {
  readonly id: string;
  readonly name?: string;
  readonly parent?: string;
  readonly path: string;
  readonly state: "valid" | "closed" | "broken";
  /**
   * Location of the definition, such as "gateway.yaml:12". The account can be changed only at this
   * location.
   */
  readonly definedAt?: string;
  readonly keyCount: number;
  readonly limits?: readonly string[];
  readonly limitUsage?: readonly UsedLimit[];
  readonly defaults?: { readonly limits: readonly string[] };
  readonly models?: readonly string[];
  readonly frontends?: readonly string[];
  readonly privacy?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly discloseLimits?: string;
  readonly version?: number;
}

export const STATE_TONES: Readonly<Record<string, Tone>> = {
  valid: "good",
  expired: "warn",
  revoked: "bad",
  closed: "bad",
  broken: "bad",
};

export const displayName = ({ name, id }: { name?: string; id: string }): string => name ?? id;

/** Returns the limits with their use, if it is known. */
export const limitBars = ({
  limits = [],
  limitUsage,
}: {
  limits?: readonly string[];
  limitUsage?: readonly UsedLimit[];
}) =>
  limits.map(
    (limit, at) => limitUsage?.find((each) => each.limit === limit) ?? limitUsage?.[at] ?? limit,
  );
