import he from "he";

export const run = () => [he.encode("<é> & ©"), he.decode("&lt;&eacute;&gt; &copy;")];
