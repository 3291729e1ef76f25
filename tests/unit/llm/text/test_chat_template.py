"""Chat templates: text as models expect it, and templates that try to reach Python."""

import pytest

from weft import ArgumentError, FileFormatError
from weft.llm.text.chat_template import CHATML, ChatTemplate

pytest.importorskip("jinja2", reason="needs the extra `llm`")
TURNS = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi <b>"}]


def test_turns_become_text():
    text = ChatTemplate(CHATML).render(TURNS)
    assert text == (
        "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi <b><|im_end|>\n"
        "<|im_start|>assistant\n"
    )
    assert ChatTemplate(CHATML).render(TURNS, reply=False).endswith("<|im_end|>\n")


def test_tools_tokens_and_json():
    template = ChatTemplate(
        "{{ bos_token }}{% for tool in tools %}{{ tool | tojson }}{% endfor %}"
        "{% for m in messages %}{% if loop.first %}{% continue %}{% endif %}{{ m.content }}"
        "{% break %}{% endfor %}",
        {"bos_token": "<s>"},
    )
    assert template.has_tools
    text = template.render(TURNS, tools=[{"name": "é<"}])
    assert text == '<s>{"name": "é<"}Hi <b>'


def test_a_template_may_refuse():
    template = ChatTemplate("{{ raise_exception('roles must alternate') }}")
    with pytest.raises(ArgumentError, match="roles must alternate"):
        template.render(TURNS)


ATTACKS = {
    "subclasses": "{{ ''.__class__.__mro__[1].__subclasses__() }}",
    "attr filter": "{{ '' | attr('__class__') | attr('__mro__') }}",
    "subscript": "{{ ''['__class__']['__base__']['__subclasses__']() }}",
    "globals of a function": "{{ raise_exception.__globals__['__builtins__'] }}",
    "globals of a filter": "{{ strftime_now.__globals__ }}",
    "the environment": "{{ self._TemplateReference__context.environment }}",
    "cycler": "{{ cycler.__init__.__globals__.os.popen('id').read() }}",
    "joiner": "{{ joiner.__init__.__globals__.os.system('id') }}",
    "lipsum": "{{ lipsum.__globals__['os'].popen('id').read() }}",
    "format": "{{ '{0.__class__.__mro__}'.format(messages) }}",
    "format map": "{{ '{x.__class__}'.format_map({'x': messages}) }}",
    "map": "{{ [messages] | map(attribute='__class__') | list }}",
    "change a list": "{{ messages.append(1) }}",
    "change a dict": "{{ messages[0].update({'role': 'system'}) }}",
    "clear": "{% do messages.clear() %}",
    "include": "{% include '/etc/passwd' %}",
    "import": "{% import '/etc/passwd' as x %}{{ x }}",
    "a long range": "{% for i in range(10000000000) %}{{ i }}{% endfor %}",
    "a generator's frame": "{{ (messages | map('upper')).gi_frame.f_globals }}",
    "a format that is kept": "{% set f = '{0.__class__}'.format %}{{ f(messages) }}",
    "format by its name": "{{ ('{0.__class__.__mro__}' | attr('format'))(messages) }}",
    "format map by its name": "{{ ('{x.__class__}' | attr('format_map'))({'x': messages}) }}",
    "format from a map": "{% for f in ['{0.__class__}'] | map('attr', 'format') %}"
    "{{ f(cycler) }}{% endfor %}",
    "format in a dict": "{{ dict(f='{0.__class__}'.format).f(messages) }}",
    "behind a wrapper": "{% set f = '{0.__class__}'.format %}{{ f.__wrapped__(messages) }}",
    "a joined name": "{{ messages | attr('__cla' ~ 'ss__') }}",
    "groups": "{{ messages | groupby('__class__') | list }}",
    "sorting": "{{ messages | sort(attribute='__class__.__name__') }}",
    "a macro": "{% macro m() %}{% endmacro %}{{ m._func.__globals__ }}{{ m.__globals__ }}",
    "a caller": "{% macro m() %}{{ caller.__globals__ }}{% endmacro %}{% call m() %}{% endcall %}",
    "namespace": "{{ namespace.__init__.__globals__ }}",
    "a type": "{{ dict.__base__.__subclasses__() }}{{ dict.mro() }}",
    "a loop": "{% for m in messages recursive %}{{ loop._recurse.__globals__ }}{% endfor %}",
    "code": "{{ raise_exception.__code__.co_consts }}{{ strftime_now.__closure__ }}",
    "what is undefined": "{{ nothing._undefined_exception.__subclasses__() }}",
    "a method's owner": "{{ [''.join] | map(attribute='__self__') | list }}",
    "a block": "{% block a %}{% endblock %}{{ self.a.__self__ }}{{ self.__init__ }}",
    "inheritance": "{% extends messages %}",
    "sort in place": "{{ messages.sort() }}",
    "set a member": "{% set messages.x = 1 %}",
}


@pytest.mark.parametrize("name", ATTACKS)
def test_a_template_cannot_reach_python(name):
    """An attack is refused, or reads as nothing; it never gets an object of Python."""
    turns = [dict(turn) for turn in TURNS]
    try:
        text = ChatTemplate(ATTACKS[name]).render(turns)
    except (ArgumentError, FileFormatError):
        text = ""
    assert text in ("", "[]", "[Undefined, Undefined]") or "<class" not in text
    for word in ("object", "builtin", "uid=", "root:", "Environment", "module"):
        assert word not in text
    assert turns == TURNS


def test_attacks_are_refused_not_ignored():
    """The plain form of an attack is an error, so that a template that needs it is noticed."""
    with pytest.raises(ArgumentError, match="refuses"):
        ChatTemplate(ATTACKS["subclasses"]).render(TURNS)


def test_too_much_text(monkeypatch):
    monkeypatch.setattr("weft.llm.text.chat_template.MOST_CHARACTERS", 1000)
    loop = "{% for i in range(99) %}{% for j in range(99) %}long text{% endfor %}{% endfor %}"
    with pytest.raises(ArgumentError, match="too long"):
        ChatTemplate(loop).render(TURNS)


def test_what_is_no_template():
    with pytest.raises(FileFormatError, match="cannot be read"):
        ChatTemplate("{% for %}")
    with pytest.raises(ArgumentError, match="expected plain data in a message, got a object"):
        ChatTemplate(CHATML).render([{"role": "user", "content": object()}])
