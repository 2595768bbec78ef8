// What must never be read in a log line, an error or a terminal: registered values in every spelling they travel in,
// and anything that looks like a key. The second wall; the first is not to write secrets at all.

const MASKED = "[secret]";

/** Shorter ones would blot out ordinary words. */
const MIN_SECRET_LENGTH = 6;

const notAfterWord = (pattern: string) => `(?<![0-9A-Za-z])${pattern}`;

/**
 * Shapes of keys: ours, bearer and basic tokens (a word of prose has no digit), the usual `sk-`. What looks back is bounded:
 * an upstream that writes nothing but blanks must not cost a look back from each of them to the first.
 */
const KEY_PATTERNS = [
  notAfterWord(String.raw`tg_[0-9A-Za-z_-]{12,}`),
  String.raw`(?<=\b[Bb]earer\s{1,8})(?=\S{20}|[^\s"]*\d)[\w.~+/=-]{6,}`,
  String.raw`(?<=\b[Bb]asic\s{1,8})(?=\S{20}|[^\s"]*\d)[\w+/=-]{6,}`,
  notAfterWord(String.raw`sk-[0-9A-Za-z_-]{8,}`),
];

/** Base64 of something that contains the value, wherever in the three-byte rhythm it falls. */
function base64Cores(value: string): string[] {
  return [0, 1, 2].map((shift) => {
    const bytes = Buffer.concat([Buffer.alloc(shift), Buffer.from(value)]);
    return bytes
      .toString("base64")
      .slice(Math.ceil((shift * 8) / 6), Math.floor((bytes.length * 8) / 6));
  });
}

const escapeRegExp = (text: string) => text.replace(/[\\^$.*+?()[\]{}|/-]/g, String.raw`\$&`);

const jsonEscape = (value: string) => JSON.stringify(value).slice(1, -1);

/** Every form of a value that is worth looking for. */
function encodingsOf(value: string): string[] {
  const whole = Buffer.from(value).toString("base64");
  const base64 = [whole, ...base64Cores(value)];
  const uri = encodeURIComponent(value.toWellFormed());
  return [
    value,
    jsonEscape(value),
    // A string that holds JSON that holds a string of JSON, as it stands in a line.
    jsonEscape(jsonEscape(value)),
    jsonEscape(jsonEscape(jsonEscape(value))),
    uri,
    uri.replace(/%[0-9A-F]{2}/g, (hex) => hex.toLowerCase()),
    uri.replaceAll("%20", "+"),
    encodeURI(value.toWellFormed()),
    ...base64,
    ...base64.map((text) => text.replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "")),
    ...base64.map(encodeURIComponent),
  ];
}

export class SecretMask {
  readonly #spellings = new Set<string>();
  #pattern: RegExp | undefined;
  /** What is shorter than this holds none; the shortest shape of a key has eleven letters. */
  #least = 11;

  /** A value of several lines (a private key) also counts line by line. */
  add(values: Iterable<string>): void {
    for (const value of values) {
      const parts = value.includes("\n")
        ? [value, ...value.split(/\r?\n/).filter((line) => line.length >= 16)]
        : [value];
      for (const spelling of parts
        .filter((part) => part.length >= MIN_SECRET_LENGTH)
        .flatMap(encodingsOf))
        if (!MASKED.includes(spelling)) {
          this.#spellings.add(spelling);
          this.#least = Math.min(this.#least, spelling.length);
        }
    }
    this.#pattern = undefined;
  }

  /** The text with every secret replaced; the same string when there is none. */
  maskText(text: string): string {
    return text.length < this.#least ? text : text.replace(this.#compiled(), MASKED);
  }

  /** A serialised line. Masked value by value, so that what comes out parses. */
  maskJsonLine(line: string): string {
    if (line.search(this.#compiled()) < 0) return line;
    return JSON.stringify(this.maskValue(JSON.parse(line)));
  }

  /** What a JSON text said, with every secret replaced, however the text spelled it. */
  maskValue(value: unknown): unknown {
    if (typeof value === "string") return this.maskText(value);
    // A secret of digits alone may travel as a number.
    if (typeof value === "number") return this.maskText(`${value}`) === `${value}` ? value : MASKED;
    if (typeof value !== "object" || value === null) return value;
    if (Array.isArray(value)) return value.map((each) => this.maskValue(each));
    return Object.fromEntries(
      Object.entries(value).map(([key, each]) => [this.maskText(key), this.maskValue(each)]),
    );
  }

  #compiled(): RegExp {
    return (this.#pattern ??= new RegExp(
      [
        // Longest first: what contains another goes whole.
        ...[...this.#spellings].sort((a, b) => b.length - a.length).map(escapeRegExp),
        ...KEY_PATTERNS,
      ].join("|"),
      "g",
    ));
  }
}
