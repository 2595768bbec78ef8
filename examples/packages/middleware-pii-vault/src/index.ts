import { defineMiddleware, fail, type Exchange, type ModelEvent } from "tollgate/plugin";

type Change = (text: string) => string;

/** Every pattern takes linear time, because every repetition is bounded. */
const KINDS = {
  email: /[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,4}/g,
  card: /\b\d{4}([ -]?)\d{4}\1\d{4}\1\d{1,7}\b/g,
  iban: /\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?\b/g,
  phone: /(?<![\w.])\+\d{1,3}(?:[ ./-]?\(?\d{1,5}\)?){2,6}(?!\w)/g,
} as const;

/** Members that contain text of users or models. */
const TEXT_MEMBERS = new Set(
  "text summary title context note prompt prompts inputs query user".split(" "),
);
/** Members in which every string is text. */
const TEXT_TREES = new Set("raw rest documents input metadata description".split(" "));

/** Returns a copy of a request or event with all its texts changed. */
function changeTexts(value: unknown, change: Change, name = "", isTree = false): unknown {
  if (typeof value === "string") {
    if (name === "args") return changeArgs(value, change);
    return isTree || TEXT_MEMBERS.has(name) ? change(value) : value;
  }
  if (Array.isArray(value))
    return value.map((one: unknown) => changeTexts(one, change, name, isTree));
  if (value === null || typeof value !== "object" || Buffer.isBuffer(value)) return value;
  const members = Object.entries(value);
  return Object.fromEntries(
    members.map(([key, one]) => [
      key,
      changeTexts(one, change, key, isTree || TEXT_TREES.has(key)),
    ]),
  );
}

/** Changes the arguments of a tool call. They are parsed first, because a letter can be written as \u0061. */
function changeArgs(args: string, change: Change): string {
  try {
    const read: unknown = JSON.parse(args);
    const result = JSON.stringify(changeTexts(read, change, "", true));
    return result === JSON.stringify(read) ? args : result;
  } catch {
    return change(args);
  }
}

/** Creates the map of placeholders and values of one request. It is released with the request. */
export function createVault(kinds: readonly (keyof typeof KINDS)[], persons: readonly string[]) {
  const values = new Map<string, string>();
  const placeholders = new Map<string, string>();
  const all = persons.toSorted(longer).map(escaped).join("|");
  const person =
    all === ""
      ? []
      : [["person", new RegExp(`(?<![\\p{L}\\d])(?:${all})(?![\\p{L}\\d])`, "gu")] as const];
  const found = [...kinds.map((kind) => [kind, KINDS[kind]] as const), ...person];
  const placeholderFor = (kind: string, value: string): string => {
    const placeholder =
      placeholders.get(value) ?? `[${kind.toUpperCase()}_${placeholders.size + 1}]`;
    placeholders.set(value, placeholder);
    values.set(placeholder, value);
    return placeholder;
  };
  return {
    /**
     * Replaces values by placeholders. The same value always has the same placeholder. The request is read in the order of the
     * conversation, so the placeholders of earlier turns are the same in each request.
     */
    hide: (text: string) =>
      found.reduce(
        (result, [kind, pattern]) =>
          result.replace(pattern, (value) => placeholderFor(kind, value)),
        text,
      ),
    /** Restores the values. `quote` escapes a value if the text is part of a JSON text. */
    restore: (text: string, quote: Change = (value) => value) =>
      text.replace(PLACEHOLDER, (found) => quote(values.get(found) ?? found)),
  };
}
type Vault = ReturnType<typeof createVault>;

const MEDIA = /^(vision|documents|audio)$/;
const PLACEHOLDER = /\[[A-Z]{1,8}_\d{1,6}\]/g;
/** The beginning of a placeholder, at the end of a delta. */
const PARTIAL = /\[(?:[A-Z]{0,8}|[A-Z]{1,8}_\d{0,6})$/;
const longer = (a: string, b: string): number => b.length - a.length;
const escaped = (word: string): string => word.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&");
const quoted: Change = (word) => JSON.stringify(word).slice(1, -1);

/** Restores the values in a response. Text that may be the beginning of a placeholder is held back until the next delta. */
function createRestorer(vault: Vault, next: (event: ModelEvent) => void) {
  const held = new Map<number, { text: string; quote: Change }>();
  return (event: ModelEvent): void => {
    if (event.type === "open")
      held.set(event.index, {
        text: "",
        quote: event.block.type === "call" ? quoted : (value) => value,
      });
    const block = "index" in event ? held.get(event.index) : undefined;
    if (event.type === "delta" && block) {
      const text = block.text + event.text;
      const at = PARTIAL.exec(text)?.index ?? text.length;
      block.text = text.slice(at);
      const out = vault.restore(text.slice(0, at), block.quote);
      // Token probabilities are omitted, because they contain the placeholders.
      return out === "" ? undefined : next({ type: "delta", index: event.index, text: out });
    }
    if (event.type === "close" && block && block.text !== "")
      next({ type: "delta", index: event.index, text: vault.restore(block.text, block.quote) });
    next(changeTexts(event, (text) => vault.restore(text)) as ModelEvent);
  };
}

export default defineMiddleware({
  api: 1,
  name: "pii-vault",
  summary: "Replaces personal data by placeholders in requests, and restores it in responses",
  sends: "nowhere",
  options: {
    type: "object",
    additionalProperties: false,
    properties: {
      kinds: {
        type: "array",
        uniqueItems: true,
        items: { enum: ["email", "card", "iban", "phone"] },
        default: ["email", "card", "iban", "phone"],
        description: "Types of data to find by pattern",
      },
      persons: {
        type: "array",
        items: { type: "string", minLength: 1, maxLength: 64 },
        default: [],
        description: "Names to replace, exactly as written",
      },
      media: {
        enum: ["reject", "pass"],
        default: "reject",
        description: "Whether to reject or pass images, audio, and files, which are not read",
      },
    },
  },
  setup({ kinds, persons, media }) {
    const vaults = new WeakMap<Exchange, Vault>();
    return {
      rewrite(request, x) {
        const vault = createVault(kinds, persons);
        vaults.set(x, vault);
        return changeTexts(request, (text) => vault.hide(text)) as typeof request;
      },
      inspect(request, x) {
        const files =
          request.operation === "transcript" ||
          (request.operation === "image" && request.inputImages[0]);
        if (media === "reject" && (files || x.features.some((one) => MEDIA.test(one))))
          fail("forbidden", "Only text is allowed in requests.", { code: "text_only" });
      },
      event: (call, next) => createRestorer(vaults.get(call.exchange) ?? createVault([], []), next),
    };
  },
});
