import { defineMiddleware, fail, type Exchange, type ModelEvent } from "tollgate/plugin";

type Change = (text: string) => string;

/** Each is linear: every repetition has an end, so a long text costs no more than its length. */
const KINDS = {
  email: /[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,4}/g,
  card: /\b\d{4}([ -]?)\d{4}\1\d{4}\1\d{1,7}\b/g,
  iban: /\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?\b/g,
  phone: /(?<![\w.])\+\d{1,3}(?:[ ./-]?\(?\d{1,5}\)?){2,6}(?!\w)/g,
} as const;

/** Members whose texts are people's or a model's; in the second set whatever is in them. */
const WORDS = new Set(
  "text summary title context note prompt prompts inputs query user".split(" "),
);
const WHOLE = new Set("raw rest documents input metadata description".split(" "));

/** The same value with its texts changed, in whatever part of a request or of an answer they stand. */
function changed(value: unknown, change: Change, name = "", whole = false): unknown {
  if (typeof value === "string") {
    if (name === "args") return inArgs(value, change);
    return whole || WORDS.has(name) ? change(value) : value;
  }
  if (Array.isArray(value)) return value.map((one: unknown) => changed(one, change, name, whole));
  if (value === null || typeof value !== "object" || Buffer.isBuffer(value)) return value;
  const members = Object.entries(value);
  return Object.fromEntries(
    members.map(([key, one]) => [key, changed(one, change, key, whole || WHOLE.has(key))]),
  );
}

/** A tool's arguments: a letter that is written as \u0061 is read before it is looked at. */
function inArgs(args: string, change: Change): string {
  try {
    const read: unknown = JSON.parse(args);
    const made = JSON.stringify(changed(read, change, "", true));
    return made === JSON.stringify(read) ? args : made;
  } catch {
    return change(args);
  }
}

/** What stands for what, in one request. It goes when the request goes. */
export function vaultOf(kinds: readonly (keyof typeof KINDS)[], persons: readonly string[]) {
  const words = new Map<string, string>();
  const names = new Map<string, string>();
  const all = persons.toSorted(longer).map(escaped).join("|");
  const person =
    all === ""
      ? []
      : [["person", new RegExp(`(?<![\\p{L}\\d])(?:${all})(?![\\p{L}\\d])`, "gu")] as const];
  const found = [...kinds.map((kind) => [kind, KINDS[kind]] as const), ...person];
  const named = (kind: string, word: string): string => {
    const name = names.get(word) ?? `[${kind.toUpperCase()}_${names.size + 1}]`;
    names.set(word, name);
    words.set(name, word);
    return name;
  };
  return {
    /** The same word has one name. Read in the order of the conversation, so the names of its history are the same each turn. */
    hide: (text: string) =>
      found.reduce((made, [kind, form]) => made.replace(form, (word) => named(kind, word)), text),
    /** `quote`: how a word is written where the text is a part of a JSON text. */
    show: (text: string, quote: Change = (word) => word) =>
      text.replace(NAME, (name) => quote(words.get(name) ?? name)),
  };
}
type Vault = ReturnType<typeof vaultOf>;

const MEDIA = /^(vision|documents|audio)$/;
const NAME = /\[[A-Z]{1,8}_\d{1,6}\]/g;
/** The beginning of a name, at the end of a piece. */
const BEGUN = /\[(?:[A-Z]{0,8}|[A-Z]{1,8}_\d{0,6})$/;
const longer = (a: string, b: string): number => b.length - a.length;
const escaped = (word: string): string => word.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&");
const quoted: Change = (word) => JSON.stringify(word).slice(1, -1);

/** An answer with the words put back: what may be the beginning of a name waits for the next piece. */
function restoring(vault: Vault, next: (event: ModelEvent) => void) {
  const held = new Map<number, { text: string; quote: Change }>();
  return (event: ModelEvent): void => {
    if (event.type === "open")
      held.set(event.index, {
        text: "",
        quote: event.block.type === "call" ? quoted : (word) => word,
      });
    const block = "index" in event ? held.get(event.index) : undefined;
    if (event.type === "delta" && block) {
      const text = block.text + event.text;
      const at = BEGUN.exec(text)?.index ?? text.length;
      block.text = text.slice(at);
      const out = vault.show(text.slice(0, at), block.quote);
      // Without probabilities, whose tokens spell the names.
      return out === "" ? undefined : next({ type: "delta", index: event.index, text: out });
    }
    if (event.type === "close" && block && block.text !== "")
      next({ type: "delta", index: event.index, text: vault.show(block.text, block.quote) });
    next(changed(event, (text) => vault.show(text)) as ModelEvent);
  };
}

export default defineMiddleware({
  api: 1,
  name: "pii-vault",
  summary:
    "Puts names in place of what is personal before it leaves, and the words back into the answer",
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
        description: "What is looked for by its form",
      },
      persons: {
        type: "array",
        items: { type: "string", minLength: 1, maxLength: 64 },
        default: [],
        description: "Names that are hidden as they are written here",
      },
      media: {
        enum: ["refuse", "pass"],
        default: "refuse",
        description: "Pictures, sound and files, which are not looked into",
      },
    },
  },
  setup({ kinds, persons, media }) {
    const vaults = new WeakMap<Exchange, Vault>();
    return {
      rewrite(request, x) {
        const vault = vaultOf(kinds, persons);
        vaults.set(x, vault);
        return changed(request, (text) => vault.hide(text)) as typeof request;
      },
      inspect(request, x) {
        const files =
          request.operation === "transcript" ||
          (request.operation === "image" && request.inputImages[0]);
        if (media === "refuse" && (files || x.features.some((one) => MEDIA.test(one))))
          fail("forbidden", "Only text may be sent from here.", { code: "text_only" });
      },
      event: (call, next) => restoring(vaults.get(call.exchange) ?? vaultOf([], []), next),
    };
  },
});
