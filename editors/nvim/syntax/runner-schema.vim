" The schema language of the runner. Words are keywords where they stand alone: any word may name a field.
if exists("b:current_syntax")
  finish
endif

syntax keyword runnerDeclaration app auth secret var outbound module python enum type entity apiKeys functions jobs routes assets
syntax keyword runnerMethod GET HEAD POST PUT PATCH DELETE OPTIONS ANY nextgroup=runnerPath skipwhite
syntax keyword runnerWord to when on where fields and or not in exists startsWith by
syntax match runnerWord "\<contains\>"
syntax keyword runnerConstant true false null now none
syntax match runnerName "\<\h\w*\ze\s*?\=\s*:"
syntax match runnerAttribute "@@\=\h\w*"
syntax match runnerNumber "\<\d[0-9_]*\(\.\d[0-9_]*\|ms\|[smhdwb]\|kb\|mb\)\=\>"
syntax match runnerPath "/\(->\)\@!\(\(->\)\@!\S\)*" contained
syntax match runnerEscape "\\[\"\\nt]" contained
syntax region runnerString start=+"+ skip=+\\.+ end=+"\|$+ contains=runnerEscape
syntax match runnerComment "//.*$" contains=@Spell
syntax region runnerComment start="/\*" end="\*/" contains=@Spell

syntax sync fromstart

highlight default link runnerDeclaration Keyword
highlight default link runnerMethod Keyword
highlight default link runnerWord Statement
highlight default link runnerConstant Constant
highlight default link runnerName Identifier
highlight default link runnerAttribute PreProc
highlight default link runnerNumber Number
highlight default link runnerPath String
highlight default link runnerEscape SpecialChar
highlight default link runnerString String
highlight default link runnerComment Comment

let b:current_syntax = "runner-schema"
