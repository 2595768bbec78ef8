// What every object has in common stays as it is. A member that a plugin put there would stand in every body, every header list and every
// schema of the process. From here on such a change throws where it is made, in the plugin. A program that embeds a gateway decides for
// itself.
export const freezeObjectPrototype = (): void => void Object.preventExtensions(Object.prototype);
