// Comments of an event stream, which providers send while an answer is not there yet: they are no byte of it.
const [LF, CR, COLON] = [10, 13, 58];

/** Reads the beginning of a stream, up to its first line that is neither blank nor a comment. */
export class LeadingComments {
  #inComment = false;

  /** Whether the stream has gone on to something else within this piece. Not called again after that. */
  hasPassed(chunk: Buffer): boolean {
    for (let at = 0; at < chunk.length; at++) {
      if (chunk[at] === LF || chunk[at] === CR) this.#inComment = false;
      else if (!this.#inComment && chunk[at] !== COLON) return true;
      else this.#inComment = true;
    }
    return false;
  }
}
