/**
 * Tracks whether streamed arguments form a complete JSON object. Each character is scanned once,
 * and the whole text is parsed at most once.
 */
export class JsonCompleteness {
  isComplete = false;
  #depth = 0;
  #quoted = false;
  #escaped = false;
  /** Whether the text can no longer become a valid object. */
  #invalid = false;

  /**
   * Adds arguments and returns whether the object is complete.
   *
   * @param call The call with all its arguments so far, including these.
   */
  grow(args: string, call: { readonly args: string }): boolean {
    for (let i = 0; i < args.length && !this.#invalid; i++) {
      const c = args.charCodeAt(i);
      if (this.#quoted) {
        if (this.#escaped) this.#escaped = false;
        else if (c === 92) this.#escaped = true;
        else if (c === 34) this.#quoted = false;
      } else if (this.isComplete) {
        if (c > 32) this.#fail();
      } else if (c === 34) this.#quoted = true;
      else if (c === 123 || c === 91) this.#depth++;
      else if (c === 125 || c === 93) {
        if (--this.#depth > 0) continue;
        // The rest of this piece may contain more text, so only the text up to this bracket is
        // parsed.
        this.isComplete = this.#depth === 0 && c === 125 && parses(call.args, args.length - 1 - i);
        if (!this.isComplete) this.#fail();
      } else if (c > 32 && this.#depth === 0) this.#fail();
    }
    return this.isComplete;
  }

  #fail(): void {
    this.isComplete = false;
    this.#invalid = true;
  }
}

/** Whether the text is valid JSON without its last characters. */
function parses(text: string, without: number): boolean {
  try {
    JSON.parse(without === 0 ? text : text.slice(0, -without));
    return true;
  } catch {
    return false;
  }
}
