// The texts that the handlers work on.

export const sentence = "The quick brown fox jumped over a sleeping dog, waited and kept running.";

const part = `## Part

The *quick* brown fox **jumped** over a \`sleeping\` dog, [waited](https://example.com/x) and kept running.

- first, walking along the river
- second, counting stars & looking up

| name | price |
|---|---|
| lamp | 12.50 |
| table | 99.00 |

`;

export const document = `${sentence}\n\n${part.repeat(10)}`;
